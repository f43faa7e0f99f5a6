// @ts-check
/**
 * Starts the service worker that keeps visited pages for when there is no connection, and fills an element of class
 * `keep-offline` with the offer to keep the whole book.
 */
(function () {
  "use strict";

  const { base } = window.book;
  if (!("serviceWorker" in navigator) || !base.protocol.startsWith("http")) return;

  const WORDS = {
    en: {
      offer: "Keep the whole book on this device",
      takes: (/** @type {string} */ size) => `${size} MB, to read without a connection`,
      coming: (/** @type {number} */ done, /** @type {number} */ of) => `${done} of ${of} files are here`,
      kept: "The whole book is on this device: it can be read without a connection.",
      forget: "Remove it",
      failed: "That did not work. Is there a connection, and room on the device?",
    },
    vi: {
      offer: "Giữ cả cuốn sách trên thiết bị này",
      takes: (/** @type {string} */ size) => `${size} MB, để đọc khi không có mạng`,
      coming: (/** @type {number} */ done, /** @type {number} */ of) => `đã có ${done} trong ${of} tệp`,
      kept: "Cả cuốn sách đã ở trên thiết bị này: có thể đọc khi không có mạng.",
      forget: "Xóa đi",
      failed: "Chưa được. Có mạng không, và thiết bị còn chỗ không?",
    },
  };
  const words = WORDS[document.documentElement.lang === "vi" ? "vi" : "en"];

  /**
   * @param {any} question
   * @param {(told: any) => void} told called for each thing that the worker says
   */
  async function ask(question, told) {
    const { active } = await navigator.serviceWorker.ready;
    const channel = new MessageChannel();
    channel.port1.onmessage = (event) => told(event.data);
    active?.postMessage(question, [channel.port2]);
  }

  /** @param {HTMLElement} place */
  function offer(place) {
    const button = document.createElement("button");
    const note = document.createElement("span");
    button.type = "button";
    button.className = "md-button";
    note.setAttribute("role", "status");
    place.replaceChildren(button, " ", note);
    let kept = false;

    /** @param {any} told */
    function show(told) {
      button.disabled = "done" in told;
      if ("done" in told) {
        note.textContent = words.coming(told.done, told.of);
      } else if ("failed" in told) {
        note.textContent = words.failed;
      } else {
        kept = told.kept;
        button.textContent = kept ? words.forget : words.offer;
        note.textContent = kept ? words.kept : words.takes((told.bytes / 1e6).toFixed(1));
        place.hidden = false;
      }
    }
    button.addEventListener("click", () => ask(kept ? { forget: true } : { everything: true }, show));
    ask({}, show);
  }

  /** What this page asked for before the worker could see it: have it kept as well, also what is still on its way. */
  async function keepThis() {
    const { serviceWorker } = navigator;
    await serviceWorker.ready;
    if (!serviceWorker.controller) {
      await new Promise((resolve) => serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
    }
    new PerformanceObserver((list) => {
      const entries = /** @type {PerformanceResourceTiming[]} */ (list.getEntries());
      const unseen = entries.filter((entry) => !entry.workerStart).map((entry) => entry.name);
      if (unseen.length) ask({ keep: unseen }, () => {});
    }).observe({ type: "resource", buffered: true });
    await ask({ keep: [location.href] }, () => {});
  }

  window.addEventListener("load", async () => {
    try {
      const first = !navigator.serviceWorker.controller;
      await navigator.serviceWorker.register(new URL("service-worker.js", base));
      if (first) await keepThis();
      if (matchMedia("(display-mode: standalone)").matches) await ask({ everything: true }, () => {});
      const place = document.querySelector(".keep-offline");
      if (place instanceof HTMLElement) offer(place);
    } catch {
      // a browser that lets sites keep nothing, as in a private window: the book is read as without this script
    }
  });
})();
