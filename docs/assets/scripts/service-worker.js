// @ts-check
/**
 * Keeps what was visited, so that it can be read again without a connection, and the whole book for who asks for it.
 *
 * No page is ever shown from here while the server answers: the network comes first, for every file. What is kept has
 * the build's name. A new build brings its own version of all that was kept, then deletes the old: if anything is in
 * the way of that, the old one stays whole, and the browser tries again at the next visit.
 */
(function () {
  "use strict";

  const worker = /** @type {any} */ (self);
  /** @type {{ build: string, files: Record<string, number> }} */
  const { build, files } = worker.book;
  /** @type {string} */
  const root = worker.registration.scope;
  const prefix = `book ${root} `; // other books may have the same host
  const name = prefix + build;
  const everything = new URL("keep-everything", root).href; // kept as a mark, and no file of the site
  const PATIENCE = 4000; // milliseconds that a page in store waits for a network that does not answer

  /** @param {string} url */
  const bare = (url) => url.replace(/[?#].*/, "");

  /** @param {string} url */
  const ours = (url) => url.startsWith(root) && bare(url).slice(root.length) in files;

  /**
   * Fetch files and keep them. Fails where one cannot be had, unless the server says that it is gone.
   * @param {Iterable<string>} urls
   * @param {RequestCache} cache
   * @param {(done: number) => void} [tell]
   */
  async function keep(urls, cache, tell) {
    const store = await caches.open(name);
    let done = 0;
    const queue = [...new Set([...urls].map(bare))];
    const next = async () => {
      for (let url = queue.shift(); url; url = queue.shift()) {
        const response = await fetch(url, { cache });
        if (response.ok && !response.redirected) await store.put(url, response);
        else if (response.status >= 500) throw new Error(`${url}: ${response.status}`);
        tell?.((done += 1));
      }
    };
    await Promise.all([next(), next(), next(), next()]);
  }

  /** What the search loads in its own worker, where a page does not see it. */
  const search = Object.keys(files)
    .filter((file) => file.startsWith("assets/javascripts/lunr/"))
    .map((file) => new URL(file, root).href);

  const whole = () => Object.keys(files).map((file) => new URL(file, root).href);

  /** Bring this build's version of all that an earlier one kept. */
  async function renew() {
    /** @type {Set<string>} */
    const wanted = new Set();
    let all = false;
    for (const old of await caches.keys()) {
      if (old.startsWith(prefix) && old !== name) {
        for (const { url } of await (await caches.open(old)).keys()) {
          if (ours(url)) wanted.add(url);
          all ||= url === everything;
        }
      }
    }
    await keep(all ? whole() : wanted, "no-cache");
    if (all) await mark();
  }

  async function mark() {
    await (await caches.open(name)).put(everything, new Response(""));
  }

  async function forgetOthers() {
    for (const old of await caches.keys()) {
      if (old.startsWith(prefix) && old !== name) await caches.delete(old);
    }
  }

  worker.addEventListener("install", (/** @type {any} */ event) => {
    event.waitUntil(renew().then(() => worker.skipWaiting()));
  });

  worker.addEventListener("activate", (/** @type {any} */ event) => {
    event.waitUntil(forgetOthers().then(() => worker.clients.claim()));
  });

  worker.addEventListener("fetch", (/** @type {any} */ event) => {
    /** @type {Request} */
    const request = event.request;
    if (request.method === "GET" && request.url.startsWith(root)) event.respondWith(answer(request, event));
  });

  /**
   * From the network, and if that fails from what is kept.
   * @param {Request} request
   * @param {any} event
   * @returns {Promise<Response>}
   */
  async function answer(request, event) {
    const url = bare(request.url);
    // The server is asked for each page anew: what the browser has of it may be older than what is kept here.
    const page = request.mode === "navigate";
    const live = (page ? fetch(request.url, { cache: "no-cache", redirect: "manual" }) : fetch(request)).then((response) => {
      if (response.ok && !response.redirected && ours(url)) {
        const copy = response.clone();
        event.waitUntil(caches.open(name).then((store) => store.put(url, copy)).catch(() => {})); // the disk is full
      }
      return response;
    });
    event.waitUntil(live.catch(() => {}));
    const kept = await (await caches.open(name)).match(url);
    if (!kept) return live.catch((error) => (page ? notKept() : Promise.reject(error)));
    const late = new Promise((resolve) => setTimeout(() => resolve(kept), PATIENCE));
    return /** @type {Promise<Response>} */ (Promise.race([live.catch(() => kept), late]));
  }

  /** What stands in the place of a page that is not kept. */
  function notKept() {
    const html = `<!doctype html><html lang="en"><meta charset="utf-8">
      <meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
      <title>Not on this device</title><main><h1>This page is not on this device</h1>
      <p>There is no connection, and the page was not visited before.</p>
      <p><a href="${root}">To the start of the book</a></p></main></html>`;
    return new Response(html, { status: 503, headers: { "Content-Type": "text/html; charset=utf-8" } });
  }

  /** What a page asks for: `keep` its own files, keep `everything`, or `forget` what is kept. */
  worker.addEventListener("message", (/** @type {any} */ event) => {
    const { keep: urls, everything: all, forget } = event.data;
    const reply = (/** @type {any} */ told) => event.ports[0]?.postMessage(told);
    const work = async () => {
      if (urls) await keep([...urls.filter(ours), ...search], "force-cache");
      if (all) {
        await keep(whole(), "default", (done) => reply({ done, of: whole().length }));
        await mark();
      }
      if (forget) await caches.delete(name);
      reply(await state());
    };
    event.waitUntil(work().catch((error) => reply({ failed: String(error.message ?? error) })));
  });

  async function state() {
    const bytes = Object.values(files).reduce((sum, size) => sum + size, 0);
    return { kept: Boolean(await (await caches.open(name)).match(everything)), bytes };
  }
})();
