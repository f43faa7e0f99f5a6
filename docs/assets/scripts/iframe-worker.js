// @ts-check
/**
 * Search for pages that were opened from the disk, where a browser starts no worker: the worker's script runs in an
 * empty frame. In the head of the pages of `OFFLINE=true mkdocs build`, before the theme's own script.
 */
(function () {
  "use strict";

  if (location.protocol !== "file:") return;

  class IFrameWorker extends EventTarget {
    /** @param {string | URL} url */
    constructor(url) {
      super();
      const own = new URL(url, location.href);
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "Search";
      document.body.append(frame);
      this.inside = /** @type {any} */ (frame.contentWindow);

      /** @param {string} address */
      const load = (address) =>
        new Promise((resolve, reject) => {
          const script = this.inside.document.createElement("script");
          script.src = new URL(address, own).href;
          script.onload = resolve;
          script.onerror = reject;
          this.inside.document.body.append(script);
        });
      this.inside.importScripts = async (/** @type {string[]} */ ...addresses) => {
        for (const address of addresses) await load(address);
      };
      this.inside.postMessage = (/** @type {any} */ data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = load(own.href);
    }

    /** @param {any} data */
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })));
    }
  }

  Object.assign(window, { Worker: IFrameWorker, IFrameWorker });
})();
