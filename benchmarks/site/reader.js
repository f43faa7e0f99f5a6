// @ts-check
/**
 * What a patient reader does with a page, evaluated in it: opens every fold and tab, presses every copy button, uses
 * every control of every widget. Returns how much there was of each, and what did not do what it is for.
 * @param {{copy: boolean, atMost: number}} options whether copy buttons are used, and how many alike controls
 */
async ({ copy, atMost }) => {
  /** @type {Record<string, number>} */
  const counts = {};
  /** @type {string[]} */
  const wrong = [];
  const rest = (milliseconds = 0) => new Promise((done) => setTimeout(done, milliseconds));
  const name = (/** @type {Element} */ element) => element.outerHTML.replace(/\s+/g, " ").slice(0, 120);

  /** Press what is on screen, if nothing lies on it. @param {HTMLElement} element @param {string} kind */
  function press(element, kind) {
    counts[kind] = (counts[kind] ?? 0) + 1;
    element.scrollIntoView({ block: "center", behavior: "instant" });
    const box = element.getBoundingClientRect();
    const [x, y] = [box.left + Math.min(box.width / 2, 40), box.top + box.height / 2];
    const there = document.elementFromPoint(x, y);
    if (!there || !(element.contains(there) || there.contains(element))) {
      wrong.push(`${kind}: ${there ? `${name(there)} lies on` : "not on screen:"} ${name(element)}`);
    }
    element.click();
  }

  for (const fold of document.querySelectorAll("article details")) {
    const details = /** @type {HTMLDetailsElement} */ (fold);
    const summary = /** @type {HTMLElement | null} */ (details.querySelector(":scope > summary"));
    if (!details.checkVisibility()) continue; // a stand-in that a widget has replaced
    const open = details.open;
    if (!summary) wrong.push(`a fold without a summary: ${name(details)}`);
    else press(summary, "folds");
    if (details.open === open) wrong.push(`a fold that does not move: ${name(details)}`);
    details.open = true;
  }

  for (const tab of document.querySelectorAll(".tabbed-labels label")) {
    const label = /** @type {HTMLLabelElement} */ (tab);
    press(label, "tabs");
    if (!(/** @type {HTMLInputElement} */ (label.control)?.checked)) wrong.push(`a tab that does not open: ${name(label)}`);
  }

  if (copy) {
    for (const block of document.querySelectorAll("pre > code")) {
      if (!block.checkVisibility() || block.closest(".output")) continue;
      block.scrollIntoView({ block: "center", behavior: "instant" }); // it gets its button when it comes near the screen
      /** @type {HTMLElement | null | undefined} */
      let button;
      for (let tries = 0; tries < 50 && !button; tries++) {
        button = block.parentElement?.querySelector(".md-code__button[data-md-type=copy]");
        if (!button) await rest(20);
      }
      if (!button) {
        wrong.push(`code without a copy button: ${name(block)}`);
        continue;
      }
      press(button, "copy buttons");
      const code = /** @type {HTMLElement} */ (block).innerText.trim();
      let copied = "";
      for (let tries = 0; tries < 20 && copied !== code; tries++) {
        if (tries) await rest(20);
        copied = (await navigator.clipboard.readText()).trim();
      }
      if (copied !== code) wrong.push(`copied something else: ${name(button)}`);
    }
  }

  for (const found of document.querySelectorAll(".widget")) {
    const widget = /** @type {HTMLElement} */ (found);
    if (!widget.checkVisibility()) continue;
    counts.widgets = (counts.widgets ?? 0) + 1;
    widget.scrollIntoView({ block: "start", behavior: "instant" });
    for (let tries = 0; tries < 100 && !widget.matches(".widget--alive"); tries++) await rest(50);
    if (!widget.matches(".widget--alive") || !widget.childElementCount) {
      wrong.push(`a widget that does not start: ${widget.dataset.widget}`);
      continue;
    }
    /** @type {Map<string, number>} */
    const used = new Map();
    const CONTROLS = "button, input, select, summary, textarea, [role=slider], [role=button], [role=tab], [role=option]";
    for (const control of widget.querySelectorAll(CONTROLS)) {
      if (!control.isConnected || !control.checkVisibility() || control.matches("[disabled]")) continue;
      const alike = `${control.tagName} ${control.getAttribute("type")} ${control.className}`;
      used.set(alike, (used.get(alike) ?? 0) + 1);
      if ((used.get(alike) ?? 0) > atMost) continue;
      const tell = () => ["input", "change"].forEach((kind) => control.dispatchEvent(new Event(kind, { bubbles: true })));
      if (control instanceof HTMLSelectElement) {
        for (const option of [...control.options].slice(0, atMost)) {
          control.value = option.value;
          tell();
        }
        counts["widget controls"] = (counts["widget controls"] ?? 0) + 1;
      } else if (control instanceof HTMLInputElement && control.type === "range") {
        const { min, max, value } = control;
        for (const to of [min || "0", max || "100", value]) {
          control.value = to;
          tell();
        }
        counts["widget controls"] = (counts["widget controls"] ?? 0) + 1;
      } else if (control instanceof HTMLElement) {
        press(control, "widget controls");
        control.focus();
        control.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
        tell();
      }
      await rest();
    }
  }
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
  await rest(400); // until tooltips are gone
  const unreached = () =>
    [...document.querySelectorAll("pre > code:not([tabindex])")].some((code) => {
      const inside = document.createRange();
      inside.selectNodeContents(code);
      const { paddingLeft, paddingRight } = getComputedStyle(code);
      const width = inside.getBoundingClientRect().width + parseFloat(paddingLeft) + parseFloat(paddingRight);
      return code.clientWidth && width > code.clientWidth;
    });
  for (let tries = 0; tries < 50 && unreached(); tries++) await rest(100); // the page sees to that when it has time
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (wide > 0) wrong.push(`the page can be pushed sideways by ${wide} px`);
  return { counts, wrong };
}
