// @ts-check
/**
 * Shows the beginning of what a link leads to, while the pointer rests on it or the keyboard is at it: a section, a
 * definition, a source, a footnote. From this page, or from another page of the site; pages opened from the disk may
 * not read each other, so there only links within a page have one. Never in the way of a finger: touch just follows.
 */
(function () {
  "use strict";

  const { base } = window.book;
  const LINES = 14; // of code
  const LETTERS = 400; // of prose
  const REST = 300; // milliseconds that the pointer rests on a link first
  const LEAVE = 200; // and those it has to get from the link to its preview
  const MARGIN = 8; // pixels to the edge of the window
  const OTHER = ".headerlink, .footnote-backref, .md-button, .glossary, .notebook-links a, .widget a, [title]";

  const article = document.querySelector("article.md-content__inner");
  if (!(article instanceof HTMLElement)) return;

  /** @type {Map<string, Promise<Document>>} */
  const pages = new Map();
  /** @type {HTMLAnchorElement | null} */
  let link = null;
  let timer = 0;

  const box = document.createElement("div");
  box.id = "preview";
  box.className = "preview md-typeset";
  box.setAttribute("role", "tooltip");
  box.hidden = true;
  document.body.append(box);

  /**
   * The page that a link leads to, where it can be read from here.
   * @param {HTMLAnchorElement} to
   * @returns {Promise<Document> | null}
   */
  function pageOf(to) {
    const url = to.href.replace(/#.*/, "");
    if (url === location.href.replace(/#.*/, "")) return Promise.resolve(document);
    if (!url.startsWith("http") || !url.startsWith(base.href) || !/(\/|\.html)$/.test(url)) return null;
    let page = pages.get(url);
    if (!page) {
      page = fetch(url).then(async (response) => {
        if (!response.ok) throw new Error(`${url}: ${response.status}`);
        return new DOMParser().parseFromString(await response.text(), "text/html");
      });
      page.catch(() => pages.delete(url));
      pages.set(url, page);
    }
    return page;
  }

  /**
   * The beginning of what stands at an anchor; of the whole page where there is none.
   * @param {Document} page
   * @param {string} anchor
   * @returns {Node[]}
   */
  function beginning(page, anchor) {
    const target = anchor ? page.getElementById(anchor) : page.querySelector("article h1");
    if (!target) return [];
    const block = target.closest(".highlight");
    if (block) return code(block, target);
    if (/^H[1-6]$/.test(target.tagName)) {
      const title = document.createElement("p");
      title.className = "preview__title";
      title.append(...copy(target).childNodes);
      let next = target.nextElementSibling;
      while (next && (!next.matches("p, ul, ol, h1, h2, h3, h4, h5, h6, .highlight") || next.matches(".notebook-links"))) next = next.nextElementSibling;
      if (!next || /^H/.test(next.tagName)) return [title];
      return [title, ...(next.matches(".highlight") ? code(next, next) : [shortened(copy(next))])];
    }
    const whole = target.closest("p, li, dd, tr, blockquote") ?? target;
    if (whole.tagName === "DT" && whole.nextElementSibling) return [copy(whole), shortened(copy(whole.nextElementSibling))];
    return [shortened(unwrapped(copy(whole)))];
  }

  /**
   * The lines of a block of code from an element in it on.
   * @param {Element} block
   * @param {Element} from
   */
  function code(block, from) {
    const all = block.querySelector("code");
    if (!all) return [];
    const part = document.createRange();
    part.selectNodeContents(all);
    let indent = "";
    if (from !== block && all.contains(from)) {
      /** @type {ChildNode} */
      let first = from;
      while (first.parentElement && first.parentElement !== all) first = first.parentElement;
      while (first.previousSibling && !first.previousSibling.textContent?.includes("\n")) first = first.previousSibling;
      part.setStartBefore(first);
      indent = first.previousSibling?.textContent?.split("\n").pop() ?? "";
    }
    const pre = document.createElement("pre");
    const inside = document.createElement("code");
    inside.append(indent, cleaned(part.cloneContents()));
    const lines = (inside.textContent ?? "").trimEnd().split("\n");
    const after = lines.findIndex((line, number) => number > 0 && /^ *[^\s)]/.test(line) && !line.startsWith(`${indent} `));
    const length = indent && after > 0 ? after : lines.length; // a method ends where its class goes on
    const shown = Math.min(length, LINES);
    cut(inside, shown < length ? " …" : "", (text, before) => {
      const room = shown - (before.match(/\n/g) ?? []).length;
      const pieces = text.split("\n");
      return pieces.length <= room ? null : pieces.slice(0, room).join("\n");
    });
    pre.append(inside);
    const frame = document.createElement("div");
    frame.className = "highlight";
    frame.append(pre);
    return [frame];
  }

  /** @param {HTMLElement} element */
  function shortened(element) {
    cut(element, " …", (text, before) => {
      const room = LETTERS - before.length;
      return text.length <= room ? null : text.slice(0, Math.max(room, 0)).replace(/\s*\S*$/, "");
    });
    return element;
  }

  /**
   * End an element's text at the first place where `end` says how much of a piece still has room.
   * @param {Node} element
   * @param {string} sign what stands for the rest
   * @param {(text: string, before: string) => string | null} end
   */
  function cut(element, sign, end) {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    let before = "";
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const text = node.textContent ?? "";
      const kept = end(text, before);
      if (kept !== null) {
        node.textContent = kept.trimEnd() + sign;
        const rest = document.createRange();
        rest.setStartAfter(node);
        rest.setEndAfter(/** @type {Node} */ (element.lastChild));
        rest.deleteContents();
        return;
      }
      before += text;
    }
  }

  /** @param {Element} element */
  function copy(element) {
    return /** @type {HTMLElement} */ (cleaned(/** @type {Element} */ (element.cloneNode(true))));
  }

  /**
   * What is a list item or a row where it stands is a paragraph alone.
   * @param {HTMLElement} element
   */
  function unwrapped(element) {
    if (!["LI", "TR", "DD"].includes(element.tagName)) return element;
    const only = element.children.length === 1 && element.firstElementChild?.tagName === "P" ? element.firstElementChild : element;
    const paragraph = document.createElement("p");
    for (const cell of element.querySelectorAll("td, th")) cell.append(" ");
    paragraph.append(...only.childNodes);
    return paragraph;
  }

  /**
   * Without anything that acts, and without names that the page already has.
   * @template {Element | DocumentFragment} T
   * @param {T} part
   * @returns {T}
   */
  function cleaned(part) {
    for (const one of part.querySelectorAll(".headerlink, .footnote-backref, button, input, script, nav, svg, img, .widget")) one.remove();
    for (const one of part.querySelectorAll("a")) one.replaceWith(...one.childNodes);
    for (const one of [...(part instanceof Element ? [part] : []), ...part.querySelectorAll("[id], [aria-describedby]")]) {
      one.removeAttribute("id");
      one.removeAttribute("aria-describedby");
    }
    return part;
  }

  /**
   * @param {HTMLAnchorElement} to
   * @param {number} x where the pointer is, for a link that goes over two lines
   * @param {number} y
   */
  async function show(to, x, y) {
    const found = pageOf(to);
    if (!found) return;
    const parts = await found.then((page) => beginning(page, decodeURIComponent(to.hash.slice(1))), () => []);
    if (link !== to || !parts.length) return;
    box.replaceChildren(...parts);
    box.hidden = false;
    const lines = [...to.getClientRects()];
    const line = lines.find((one) => one.left <= x && x <= one.right && one.top <= y && y <= one.bottom) ?? lines[0];
    if (!line) return hide();
    const { width, height } = box.getBoundingClientRect();
    const below = line.bottom + height + MARGIN < innerHeight || line.top < height + MARGIN;
    const left = Math.min(line.left, document.documentElement.clientWidth - width - MARGIN);
    box.style.left = `${Math.max(left, MARGIN) + scrollX}px`;
    box.style.top = `${(below ? line.bottom : line.top - height) + scrollY}px`;
    box.classList.toggle("preview--above", !below);
    to.setAttribute("aria-describedby", box.id);
  }

  function hide() {
    clearTimeout(timer);
    link?.removeAttribute("aria-describedby");
    link = null;
    box.hidden = true;
  }

  /**
   * @param {EventTarget | null} from
   * @returns {HTMLAnchorElement | null}
   */
  function linkAt(from) {
    const one = from instanceof Element ? from.closest("a[href]") : null;
    if (!(one instanceof HTMLAnchorElement) || one.matches(OTHER)) return null;
    return one.hash || one.closest("p, li") ? one : null;
  }

  article.addEventListener("pointerover", (event) => {
    const to = event.pointerType === "mouse" ? linkAt(event.target) : null;
    if (!to) return;
    clearTimeout(timer);
    if (to === link) return;
    timer = window.setTimeout(() => {
      hide();
      link = to;
      show(to, event.clientX, event.clientY);
    }, REST);
  });
  article.addEventListener("pointerout", (event) => {
    if (linkAt(event.target)) {
      clearTimeout(timer);
      timer = window.setTimeout(hide, LEAVE);
    }
  });
  box.addEventListener("pointerenter", () => clearTimeout(timer));
  box.addEventListener("pointerleave", () => (timer = window.setTimeout(hide, LEAVE)));
  article.addEventListener("focusin", (event) => {
    const to = linkAt(event.target);
    if (!to || !to.matches(":focus-visible")) return;
    hide();
    link = to;
    show(to, -1, -1);
  });
  article.addEventListener("focusout", hide);
  article.addEventListener("click", hide);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
})();
