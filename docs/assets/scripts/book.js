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
     */
    replaces(element) {
      element.previousElementSibling?.classList.add("replaced");
    },
  };
  Object.assign(window, { book });

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
  });
})();
