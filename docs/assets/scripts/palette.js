// @ts-check
/**
 * Light, dark, or as the system has it. In place of the theme's own script for this form, which has a browser style the
 * whole page three times over before anybody can touch it. What a reader chooses is kept where the theme keeps it.
 */
(function () {
  "use strict";

  const form = document.querySelector("form[data-palette]");
  if (!form) return;
  const inputs = [...form.querySelectorAll("input")];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const ANY = "(prefers-color-scheme)";

  /** @param {HTMLInputElement} input @param {string} part */
  const told = (input, part) => input.getAttribute(`data-md-color-${part}`) ?? "";

  /** The colours of a choice; the system's, where that is the choice. @param {HTMLInputElement} input */
  function colours(input) {
    const media = `(prefers-color-scheme: ${dark.matches ? "dark" : "light"})`;
    const from = told(input, "media") === ANY ? (inputs.find((one) => told(one, "media") === media) ?? input) : input;
    return { scheme: told(from, "scheme"), primary: told(from, "primary"), accent: told(from, "accent") };
  }

  /** @param {string} name */
  function meta(name) {
    const element = document.createElement("meta");
    element.name = name;
    document.head.append(element);
    return element;
  }
  const [colour, scheme] = [meta("theme-color"), meta("color-scheme")]; // for the browser's own bars

  /** @param {HTMLInputElement} input */
  function show(input) {
    for (const [part, value] of Object.entries(colours(input))) {
      const name = `data-md-color-${part}`;
      if (document.body.getAttribute(name) !== value) document.body.setAttribute(name, value);
    }
    for (const one of inputs) {
      if (one.nextElementSibling instanceof HTMLElement) one.nextElementSibling.hidden = one !== input;
    }
    (window.requestIdleCallback ?? setTimeout)(() => {
      const style = getComputedStyle(document.querySelector(".md-header") ?? document.body);
      [colour.content, scheme.content] = [style.backgroundColor, style.colorScheme];
    });
  }

  /** @param {HTMLInputElement} input */
  function choose(input) {
    document.body.setAttribute("data-md-color-switching", ""); // all at once, without transitions
    show((current = input));
    setTimeout(() => document.body.removeAttribute("data-md-color-switching"));
    const kept = { index: inputs.indexOf(input), color: { media: told(input, "media"), ...colours(input) } };
    withStorage(() => __md_set("__palette", kept));
  }

  /** Some readers have none. @param {() => any} use */
  function withStorage(use) {
    try {
      return use();
    } catch {
      return null;
    }
  }

  let current = inputs[withStorage(() => __md_get("__palette"))?.index] ?? inputs[0];
  show(current);
  dark.addEventListener("change", () => show(current));
  form.addEventListener("change", ({ target }) => choose(/** @type {HTMLInputElement} */ (target)));
  form.addEventListener("keydown", (event) => {
    if (/** @type {KeyboardEvent} */ (event).key !== "Enter") return;
    const next = inputs[(inputs.indexOf(current) + 1) % inputs.length];
    next.checked = true;
    next.focus();
    choose(next);
  });
})();
