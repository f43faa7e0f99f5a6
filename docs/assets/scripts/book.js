// @ts-check
/**
 * What every page loads: starts the page's widgets, each on the values that its example returned when the book was
 * built. Classic scripts and no `fetch`, so that pages also work when they are opened from the disk.
 */
(function () {
  "use strict";

  /** @typedef {(element: HTMLElement, values: any, language: string) => void} Start */

  /** @type {Map<string, Start>} */
  const starts = new Map();
  /** @type {Map<string, Promise<void>>} */
  const loaded = new Map();
  /** @type {Record<string, any>} */
  const arrived = {};

  const own = /** @type {HTMLScriptElement} */ (document.currentScript);
  const base = new URL("../../", own.src);

  /**
   * Load a script of this site once.
   * @param {string} path below the site's root
   * @returns {Promise<void>}
   */
  function load(path) {
    let promise = loaded.get(path);
    if (!promise) {
      promise = new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = new URL(path, base).href;
        script.onload = () => resolve();
        script.onerror = () => reject(new Error(`${path} could not be loaded`));
        document.head.append(script);
      });
      promise.catch(() => loaded.delete(path)); // a later try may have a connection
      loaded.set(path, promise);
    }
    return promise;
  }

  /**
   * What an example returned when the book was built.
   * @param {string} example its qualified name, `reading.one_input`
   * @returns {Promise<any>}
   */
  async function values(example) {
    await load(`values/${example}.js`);
    return arrived[example];
  }

  /** @param {HTMLElement} element */
  async function begin(element) {
    const name = element.dataset.widget ?? "";
    const [given] = await Promise.all([values(element.dataset.example ?? ""), load(`assets/scripts/widgets/${name}.js`)]);
    const start = starts.get(name);
    if (start) {
      element.textContent = "";
      const [around, next] = [element.parentNode, element.nextSibling];
      element.remove(); // what comes anew does not count as moved when it takes its stand-in's place
      around?.insertBefore(element, next);
      start(element, given, document.documentElement.lang);
      element.classList.add("widget--alive");
    }
  }

  const book = {
    base,
    load,
    values,
    /**
     * Called by `values/<example>.js`.
     * @param {string} example
     * @param {any} given
     */
    arrive(example, given) {
      arrived[example] = given;
    },
    /**
     * Called by `widgets/<name>.js`: how such a widget starts in its element.
     * @param {string} name
     * @param {Start} start
     */
    widget(name, start) {
      starts.set(name, start);
    },
    /**
     * Hide the figure or output that stands right before a widget, its stand-in without JavaScript. Print shows it again.
     * @param {HTMLElement} element
     * @returns {Element | null} what is hidden
     */
    replaces(element) {
      const how = element.previousElementSibling;
      if (how?.matches("details.made")) element.after(how); // how it was made stays below
      const standIn = element.previousElementSibling;
      standIn?.classList.add("replaced");
      return standIn;
    },
  };
  Object.assign(window, { book });

  /**
   * Let the keyboard reach a block of code that is wider than the page. The theme does so, but a block that is far from
   * the screen is not laid out (book.css) and has no width to it; a range in it has.
   * @param {HTMLElement} block
   */
  function reachable(block) {
    const inside = document.createRange();
    inside.selectNodeContents(block);
    const { paddingLeft, paddingRight } = getComputedStyle(block);
    const width = inside.getBoundingClientRect().width + parseFloat(paddingLeft) + parseFloat(paddingRight);
    if (block.clientWidth && width > block.clientWidth) block.tabIndex = 0;
  }

  /**
   * @param {ParentNode} part
   * @returns {HTMLElement[]}
   */
  const codeIn = (part) => [...part.querySelectorAll("pre > code")].map((code) => /** @type {HTMLElement} */ (code));

  /**
   * Give buttons a name of their own: the theme's tooltips take a button's title away while they show it.
   * @param {ParentNode} part
   */
  function name(part) {
    for (const button of part.querySelectorAll("button[title]:not([aria-label])")) {
      button.setAttribute("aria-label", button.getAttribute("title") ?? "");
    }
  }

  /**
   * The corner with a block's copy button comes when the block nears the screen. The theme makes a navigation of each:
   * too many landmarks. And it takes a block that leaves the screen from the keyboard: see the observer below.
   * @param {HTMLElement} nav
   */
  function corner(nav) {
    nav.setAttribute("role", "none");
    name(nav);
  }

  addEventListener("load", () => {
    const blocks = codeIn(document); // many: measured when the browser has nothing else to do
    const later = window.requestIdleCallback ?? setTimeout;
    const next = () => {
      const block = blocks.shift();
      if (!block) return;
      reachable(block);
      later(next); // one at a time: a reader's touch need not wait
    };
    later(next);
  });
  addEventListener("toggle", ({ target }) => target instanceof HTMLDetailsElement && codeIn(target).forEach(reachable), true);

  document.addEventListener("DOMContentLoaded", () => {
    const near = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) {
          if (entry.isIntersecting) {
            near.unobserve(entry.target);
            begin(/** @type {HTMLElement} */ (entry.target)).catch((error) => console.warn(error.message));
          }
        }
      },
      { rootMargin: "600px" },
    );
    for (const element of document.querySelectorAll(".widget")) near.observe(element);
    name(document);
    new MutationObserver((changes) => {
      for (const { addedNodes, target } of changes) {
        if (target instanceof HTMLElement && target.matches("pre > code:not([tabindex])")) reachable(target);
        for (const node of addedNodes) if (node instanceof HTMLElement && node.matches("nav.md-code__nav")) corner(node);
      }
    }).observe(document.querySelector("article") ?? document.body, { childList: true, subtree: true, attributeFilter: ["tabindex"] });
  });
})();
