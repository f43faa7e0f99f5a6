// @ts-check
/**
 * Remembers on this device, and nowhere else, which chapters (pages with code) have been read: one is read once its
 * end was on screen. The navigation and the home page's list of chapters show a mark, and the home page offers to go on. Without
 * storage, or without JavaScript, the pages are as they are.
 */
(function () {
  "use strict";

  /** @typedef {{read: string[], last: string, place: string}} Progress */

  const vietnamese = document.documentElement.lang === "vi";
  const WORDS = vietnamese
    ? {
        read: "đã đọc",
        go: "Đọc tiếp: ",
        count: (/** @type {number} */ some, /** @type {number} */ all) => `Đã đọc ${some} trên ${all} chương. Chỉ thiết bị này nhớ điều đó.`,
        forget: "Quên đi",
      }
    : {
        read: "read",
        go: "Continue: ",
        count: (/** @type {number} */ some, /** @type {number} */ all) => `${some} of ${all} chapters read. Only this device remembers it.`,
        forget: "Forget it",
      };
  const KEY = `${book.base.pathname}progress`;

  /** @returns {Progress} */
  function remembered() {
    try {
      const { read, last, place } = JSON.parse(localStorage.getItem(KEY) ?? "{}");
      return { read: Array.isArray(read) ? read.map(String) : [], last: String(last ?? ""), place: String(place ?? "") };
    } catch {
      return { read: [], last: "", place: "" }; // no storage, or none of ours in it
    }
  }

  /** @param {Partial<Progress>} news */
  function remember(news) {
    try {
      localStorage.setItem(KEY, JSON.stringify({ ...remembered(), ...news }));
    } catch {
      // then it is forgotten
    }
  }

  /**
   * The name of a page, the same whether it comes from a server or from the disk.
   * @param {string} address
   */
  function named(address) {
    const path = new URL(address, location.href).pathname;
    return path.slice(book.base.pathname.length).replace(/(^|\/)index\.html$|\.html$|\/$/, "");
  }

  /**
   * @template {keyof HTMLElementTagNameMap} Tag
   * @param {Tag} tag
   * @param {string} className
   * @param {string} text
   */
  function element(tag, className, text) {
    const made = document.createElement(tag);
    made.className = className;
    made.textContent = text;
    return made;
  }

  /** @param {string} selector */
  function links(selector) {
    return /** @type {HTMLAnchorElement[]} */ ([...document.querySelectorAll(selector)]);
  }

  const here = named(location.href);
  const inNavigation = () => links(".md-nav--primary a.md-nav__link:not([href^='#'])").filter((link) => named(link.href));
  const inList = () => links(".md-typeset table td:first-child > a").filter((link) => named(link.href));
  const isHome = here === "";
  const isChapter = inNavigation().some((link) => named(link.href) === here) && document.querySelector("article .highlight") !== null;

  function show() {
    for (const old of document.querySelectorAll(".read-mark, .progress, .continue")) old.remove();
    const { read, last, place } = remembered();
    const chapters = isHome ? inList() : [];
    for (const link of [...inNavigation(), ...chapters]) {
      if (read.includes(named(link.href))) {
        const mark = element("span", "read-mark", "");
        mark.append(element("span", "read-mark__word", ` (${WORDS.read})`));
        link.append(mark);
      }
    }
    const start = document.querySelector(".start");
    if (!start || !chapters.length || !(read.length || last)) return;

    // Where the reader stopped, or, if that was the end of a chapter, the one after it.
    const at = chapters.findIndex((link) => named(link.href) === last);
    const unread = (/** @type {HTMLAnchorElement} */ link) => !read.includes(named(link.href));
    const next = at >= 0 && unread(chapters[at]) ? chapters[at] : (chapters.slice(at + 1).find(unread) ?? chapters.find(unread));
    if (next) {
      const go = element("a", "md-button md-button--primary continue", WORDS.go + (next.firstChild?.textContent ?? ""));
      go.href = next.href + (next === chapters[at] && place ? `#${place}` : "");
      start.prepend(go);
    }
    const forget = element("button", "progress__forget", WORDS.forget);
    forget.type = "button";
    forget.addEventListener("click", () => {
      try {
        localStorage.removeItem(KEY);
      } catch {
        // nothing to forget
      }
      show();
      /** @type {HTMLElement | null} */ (start.querySelector("a"))?.focus();
    });
    const said = element("p", "progress", `${WORDS.count(chapters.filter((link) => !unread(link)).length, chapters.length)} `);
    said.append(forget);
    chapters[0].closest("table")?.after(said);
  }

  /** The heading that the reader has come to: the last one above the middle of the screen. */
  function place() {
    const above = [...document.querySelectorAll("article :is(h2, h3)[id]")].filter(
      (heading) => heading.getBoundingClientRect().top < innerHeight / 2,
    );
    return above.at(-1)?.id ?? "";
  }

  document.addEventListener("DOMContentLoaded", () => {
    show();
    if (!isChapter) return;
    remember({ last: here, place: "" });
    const end = document.querySelector("article > :last-child");
    if (end) {
      new IntersectionObserver((entries, observer) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        observer.disconnect();
        const { read } = remembered();
        if (!read.includes(here)) {
          remember({ read: [...read, here] });
          show();
        }
      }).observe(end);
    }
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && isChapter && remembered().last === here) remember({ place: place() });
  });
  addEventListener("pageshow", (event) => {
    if (event.persisted) show();
  });

  // Paper has no folds.
  /** @type {HTMLDetailsElement[]} */
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [.../** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll("article details:not([open])"))];
    for (const fold of opened) fold.open = true;
  });
  addEventListener("afterprint", () => {
    for (const fold of opened) fold.open = false;
  });
})();
