// @ts-check
/**
 * Puts the pages of a built site together as one document, ready to be printed: a cover, the contents, then every page
 * in the order of the navigation. Runs in an empty page at the site's root.
 * @param {Record<string, {home: string, contents: string}>} words by language
 */
async function assemble(words) {
  const NAMES = ["id", "for", "headers", "aria-labelledby", "aria-describedby", "aria-controls"];
  const LINES_TO_KEEP = 20; // shorter blocks of code stay on one sheet
  const start = new URL("./", location.href);

  /** @param {string} address */
  async function read(address) {
    const response = await fetch(address);
    if (!response.ok) throw new Error(`${address}: ${response.status}`);
    return new DOMParser().parseFromString(await response.text(), "text/html");
  }

  /**
   * @template {keyof HTMLElementTagNameMap} Tag
   * @param {Tag} tag
   * @param {string} className
   * @param {...(Node | string)} children
   */
  function element(tag, className, ...children) {
    const made = document.createElement(tag);
    made.className = className;
    made.append(...children);
    return made;
  }

  const first = await read(start.href);
  document.documentElement.lang = first.documentElement.lang;
  const { home, contents } = words[document.documentElement.lang] ?? words.en;
  document.title = first.querySelector("article h1")?.firstChild?.textContent ?? first.title;
  for (const link of first.querySelectorAll('link[rel="stylesheet"]')) {
    const sheet = document.createElement("link");
    sheet.rel = "stylesheet";
    sheet.href = new URL(link.getAttribute("href") ?? "", start).href;
    const loaded = new Promise((resolve) => sheet.addEventListener("load", resolve, { once: true }));
    document.head.append(sheet);
    await loaded;
  }

  // The navigation names the pages, their order and the parts of the book.
  /** @type {{url: URL, title: string, part: string, name: string}[]} */
  const pages = [];
  for (const link of first.querySelectorAll(".md-nav--primary a.md-nav__link[href]")) {
    const href = link.getAttribute("href") ?? "";
    const url = new URL(href, start);
    if (href.startsWith("#") || pages.some((page) => page.url.pathname === url.pathname)) continue;
    const part = link.closest(".md-nav__item--nested")?.querySelector(":scope > label")?.textContent?.trim() ?? "";
    const title = link.textContent?.trim() ?? "";
    const path = url.pathname.slice(start.pathname.length).replace(/index\.html$|\.html$|\/$/g, "");
    pages.push({ url, title, part, name: path.replaceAll("/", "-") || "home" });
  }

  /**
   * Where a link leads in the one document; nothing for what lies beside the book, such as a file to download.
   * @param {URL} url
   */
  function inside(url) {
    const page = pages.find((one) => one.url.pathname === url.pathname);
    if (page) return `#${page.name}${url.hash ? `--${decodeURIComponent(url.hash.slice(1))}` : ""}`;
    return url.origin === start.origin ? undefined : url.href;
  }

  /**
   * Give every name in a page the page's own in front, so that names stay single in the whole book.
   * @param {Element} root
   * @param {{url: URL, name: string}} page
   */
  function rename(root, page) {
    for (const one of root.querySelectorAll("*")) {
      for (const { name, value } of [...one.attributes]) {
        if (NAMES.includes(name)) {
          one.setAttribute(name, value.replace(/\S+/g, `${page.name}--$&`));
        } else if (name === "src") {
          one.setAttribute(name, new URL(value, page.url).href);
        } else if (name === "href" && one instanceof HTMLAnchorElement) {
          const target = inside(new URL(value, page.url));
          if (target) one.setAttribute(name, target);
          else one.removeAttribute(name);
        } else if (name === "href" || name === "xlink:href") {
          if (value.startsWith("#")) one.setAttribute(name, `#${page.name}--${value.slice(1)}`);
        } else if (value.includes("url(#")) {
          one.setAttribute(name, value.replaceAll("url(#", `url(#${page.name}--`));
        }
      }
    }
  }

  const lead = first.querySelector('meta[name="description"]')?.getAttribute("content") ?? "";
  const list = element("ol", "print-contents__list");
  const body = element("main", "md-typeset");
  const sheet = new CSSStyleSheet();
  let part = "";
  for (const page of pages) {
    const source = page.url.pathname === start.pathname ? first : await read(page.url.href);
    const article = source.querySelector("article");
    if (!article) continue;
    const chapter = document.importNode(article, true);
    chapter.id = page.name;
    chapter.classList.add("print-chapter");
    rename(chapter, page);
    for (const details of chapter.querySelectorAll("details")) details.open = true;
    for (const block of chapter.querySelectorAll(".highlight")) {
      block.classList.toggle("whole", (block.textContent?.split("\n").length ?? 0) < LINES_TO_KEEP);
    }
    body.append(chapter);

    const heading = page.name === "home" ? home : (chapter.querySelector("h1")?.firstChild?.textContent ?? page.title);
    if (page.part && page.part !== part) list.append(element("li", "print-contents__part", page.part));
    part = page.part;
    const link = element("a", "", heading);
    link.href = `#${page.name}`;
    list.append(element("li", "", link, element("span", "print-contents__number")));
    // Each chapter's pages are headed by its title.
    chapter.style.setProperty("page", `chapter-${page.name}`);
    sheet.insertRule(`@page chapter-${page.name} { @top-right { content: ${JSON.stringify(heading)}; } }`);
  }
  document.adoptedStyleSheets = [sheet];

  const title = element("p", "print-cover__title", document.title);
  const cover = element("header", "print-cover", title, element("p", "", lead));
  const table = element("nav", "print-contents md-typeset", element("h1", "", contents), list);
  for (const { name, value } of first.body.attributes) document.body.setAttribute(name, value);
  document.body.dataset.mdColorScheme = "default";
  document.body.append(cover, table, body);

  await document.fonts.ready;
}
