// @ts-check
/**
 * Where each token looks: as lines from the tokens that ask to the tokens that are read, and as a matrix; with the
 * entropy of the chosen row and of its head beside them. Every number comes from the data: the values of an example
 * that calls `attention.viewed`, or another widget's own.
 *
 * @typedef {object} ViewedHeads What some heads do, the model's own or their mean.
 * @property {number[][][][]} weights by layer, head, token that asks, token that is read
 * @property {number[][][]} entropy in nats, by layer, head, token that asks
 * @property {number[][]} mean_entropy by layer and head: the mean over the tokens that ask
 *
 * @typedef {object} ViewedTokens
 * @property {string[]} tokens
 * @property {string[]} [writes] what each token's place writes in the end
 * @property {number} uniform the entropy of a row that looks at all tokens alike
 * @property {ViewedHeads} [mean] the mean over the heads of each layer, as the layer's only head
 *
 * @typedef {ViewedHeads & ViewedTokens} ViewedAttention
 *
 * Other scripts: `await book.load("assets/scripts/widgets/attention-viewer.js")`, then
 * `const viewer = book.attentionViewer(element, data)`, and `viewer.update(other)` as often as there is other data.
 */
(function () {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const MEAN = "mean";
  const FEW = 6;

  const WORDS = {
    en: {
      layer: "Layer",
      head: "Head",
      mean: "mean",
      hint: "Choose a token on the left to see where it looks.",
      asks: "asks",
      read: "is read",
      choose: "Token that asks",
      matrix: "Weights: a row for each token that asks, a column for each token that is read",
      entropy: "Entropy in nats: how widely a row looks",
      row: /** @param {string} token */ (token) => `row of ${token}`,
      rows: "all rows, mean",
      uniform: "an even row",
      weight: "weight",
      itself: "itself",
      place: "place",
      writes: "writes",
      gives: /** @param {string} who @param {string} what */ (who, what) => `${who} gives ${what}.`,
      to: /** @param {string} weight @param {string} whom */ (weight, whom) => `${weight} to ${whom}`,
      less: "less to each of the others",
    },
    vi: {
      layer: "Lớp",
      head: "Head",
      mean: "trung bình",
      hint: "Chọn một token bên trái để xem nó nhìn vào đâu.",
      asks: "hỏi",
      read: "được đọc",
      choose: "Token hỏi",
      matrix: "Trọng số: mỗi token hỏi một hàng, mỗi token được đọc một cột",
      entropy: "Entropy (nat): một hàng nhìn rộng đến đâu",
      row: /** @param {string} token */ (token) => `hàng của ${token}`,
      rows: "mọi hàng, trung bình",
      uniform: "một hàng đều",
      weight: "trọng số",
      itself: "chính nó",
      place: "vị trí",
      writes: "viết",
      gives: /** @param {string} who @param {string} what */ (who, what) => `${who} dành ${what}.`,
      to: /** @param {string} weight @param {string} whom */ (weight, whom) => `${weight} cho ${whom}`,
      less: "ít hơn cho mỗi token còn lại",
    },
  };

  let viewers = 0;

  /**
   * @param {string} name
   * @param {Record<string, string | number>} [attributes]
   * @param {(Node | string)[]} children
   * @returns {HTMLElement}
   */
  function made(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
    element.append(...children);
    return element;
  }

  /**
   * Radio buttons, each in its label; the browser moves among them with the arrow keys.
   * @param {string} name
   * @param {string} legend
   * @param {{ value: string, label: Node | string, spoken?: string }[]} options
   * @param {string} chosen
   * @param {(value: string) => void} choose
   */
  function choices(name, legend, options, chosen, choose) {
    const set = made("fieldset", {}, made("legend", {}, legend));
    for (const { value, label, spoken } of options) {
      const input = /** @type {HTMLInputElement} */ (made("input", { type: "radio", name, value }));
      if (spoken) input.setAttribute("aria-label", spoken);
      input.checked = value === chosen;
      input.addEventListener("change", () => choose(value));
      set.append(made("label", {}, input, made("span", {}, label)));
    }
    return set;
  }

  /**
   * The same choice as a list that opens.
   * @type {typeof choices}
   */
  function picker(name, legend, options, chosen, choose) {
    const select = /** @type {HTMLSelectElement} */ (made("select", { name }));
    for (const { value, label } of options) select.append(made("option", { value }, label));
    select.value = chosen;
    select.addEventListener("change", () => choose(select.value));
    return made("label", {}, legend, select);
  }

  /**
   * @param {HTMLElement} element
   * @param {ViewedAttention} data
   * @param {string} [language]
   * @returns {{ update(data: ViewedAttention): void }}
   */
  function attentionViewer(element, data, language = document.documentElement.lang) {
    const words = WORDS[language === "vi" ? "vi" : "en"];
    const decimals = { minimumFractionDigits: 2, maximumFractionDigits: 2, roundingMode: "halfEven" };
    const twoDecimals = new Intl.NumberFormat(language, decimals);
    /**
     * As the prose has it: rounded from the exact value, as `toFixed` does; a tie, such as 1/8, to the even digit.
     * @param {number} value
     */
    const written = (value) => twoDecimals.format((8 * value) % 1 ? Number(value.toFixed(2)) : value);
    const list = new Intl.ListFormat(language);
    const id = `viewer-${++viewers}`;
    const chosen = { layer: String(data.weights.length - 1), head: MEAN, row: 0 };
    const body = made("div", { class: "viewer" });
    const sentence = made("p", { class: "viewer-sentence" });
    const entropies = made("div", { class: "viewer-entropy" });
    element.append(body, sentence, entropies);

    /** What the row needs to show itself; made anew by `build`. */
    let show = () => {};

    /** @returns {{ weights: number[][], entropy: number[], mean_entropy: number }} */
    function shown() {
      const layer = Number(chosen.layer);
      const mean = chosen.head === MEAN && data.mean;
      const [looks, head] = mean ? [mean, 0] : [data, Number(chosen.head)];
      return {
        weights: looks.weights[layer][head],
        entropy: looks.entropy[layer][head],
        mean_entropy: looks.mean_entropy[layer][head],
      };
    }

    /** @param {number} token */
    function named(token) {
      const { tokens } = data;
      const again = tokens.indexOf(tokens[token]) !== tokens.lastIndexOf(tokens[token]);
      return `“${tokens[token]}”${again ? ` (${words.place} ${token + 1})` : ""}`;
    }

    /** @param {number[]} weights */
    function said(weights) {
      const order = weights.map((_, token) => token).sort((a, b) => weights[b] - weights[a]);
      const most = order.slice(0, order.length > 4 ? 3 : 4);
      const parts = most.map((token) =>
        words.to(written(weights[token]), token === chosen.row ? words.itself : named(token)),
      );
      if (order.length > most.length) parts.push(words.less);
      return words.gives(named(chosen.row), list.format(parts));
    }

    /** @param {number} row */
    function choose(row) {
      if (row === chosen.row) return;
      chosen.row = row;
      sentence.ariaLive = "polite";
      show();
    }

    function build() {
      const { tokens, writes } = data;
      const { weights, entropy, mean_entropy } = shown();
      const count = tokens.length;
      body.classList.toggle("viewer--roomy", count <= 5);
      body.classList.toggle("viewer--long", tokens.some((token) => token.length > 6));
      body.style.setProperty("--tokens", String(count));

      const asking = choices(
        `${id}-row`,
        words.choose,
        tokens.map((token, row) => ({
          value: String(row),
          label: writes ? `${token} → ${writes[row]}` : token,
          spoken: writes && `${named(row)}, ${words.writes} ${writes[row]}`,
        })),
        String(chosen.row),
        (value) => choose(Number(value)),
      );
      asking.className = "viewer-asking";
      const labels = [...asking.querySelectorAll("label")];
      labels.forEach((label, row) =>
        label.addEventListener("pointermove", (event) => event.pointerType === "mouse" && choose(row)),
      );

      const svg = document.createElementNS(SVG, "svg");
      svg.setAttribute("viewBox", `0 0 100 ${count}`);
      svg.setAttribute("preserveAspectRatio", "none");
      svg.setAttribute("aria-hidden", "true");
      const lines = weights.map((row, from) =>
        row.map((weight, to) => {
          const path = document.createElementNS(SVG, "path");
          const [start, end] = [from + 0.5, to + 0.5];
          path.setAttribute("d", `M0 ${start}C50 ${start} 50 ${end} 100 ${end}`);
          path.style.setProperty("--weight", String(weight));
          svg.append(path);
          return path;
        }),
      );

      const given = tokens.map(() => made("span", { class: "viewer-weight" }));
      const read = made(
        "ol",
        { class: "viewer-read", "aria-label": words.read },
        ...tokens.map((token, key) => made("li", {}, made("span", {}, token), given[key])),
      );

      const cells = weights.map((row) =>
        row.map((weight) => {
          const cell = made("td", { tabindex: -1 }, made("span", {}, written(weight)));
          cell.style.setProperty("--weight", String(weight));
          return cell;
        }),
      );
      const rows = cells.map((row, from) =>
        made("tr", {}, made("th", { scope: "row" }, writes ? `${tokens[from]} → ${writes[from]}` : tokens[from]), ...row),
      );
      const matrix = made(
        "table",
        { class: "viewer-matrix", role: "grid", "aria-label": words.matrix },
        made("thead", {}, made("tr", {}, made("td"), ...tokens.map((token) => made("th", { scope: "col" }, made("span", {}, token))))),
        made("tbody", {}, ...rows),
      );
      let column = 0;
      cells.forEach((row, from) =>
        row.forEach((cell, to) => {
          cell.addEventListener("pointermove", (event) => event.pointerType === "mouse" && choose(from));
          cell.addEventListener("focus", () => {
            column = to;
            choose(from);
            show();
          });
        }),
      );
      matrix.addEventListener("keydown", (event) => {
        const last = count - 1;
        /** @type {Record<string, [number, number]>} */
        const ways = {
          ArrowUp: [chosen.row - 1, column],
          ArrowDown: [chosen.row + 1, column],
          ArrowLeft: [chosen.row, column - 1],
          ArrowRight: [chosen.row, column + 1],
          Home: [chosen.row, 0],
          End: [chosen.row, last],
        };
        const way = ways[event.key];
        if (!way || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        const [row, key] = way.map((place) => Math.min(last, Math.max(0, place)));
        cells[row][key].focus();
      });

      const measures = ["", words.rows, words.uniform].map((label) => ({
        term: made("dt", {}, label),
        number: made("span"),
        bar: made("i", { "aria-hidden": "true" }),
      }));
      /** @param {number} index @param {number} nats */
      function measure(index, nats) {
        measures[index].number.textContent = written(nats);
        measures[index].bar.style.setProperty("--share", `${(100 * nats) / (data.uniform || 1)}%`);
      }
      measure(1, mean_entropy);
      measure(2, data.uniform);
      entropies.replaceChildren(
        made("p", {}, words.entropy),
        made("dl", {}, ...measures.map(({ term, number, bar }) => made("div", {}, term, made("dd", {}, number, bar)))),
      );

      body.replaceChildren(
        ...controls(),
        made("p", { class: "viewer-hint" }, words.hint),
        made(
          "div",
          { class: "viewer-panels" },
          made(
            "div",
            { class: "viewer-lines" },
            made("p", { "aria-hidden": "true" }, writes ? `${words.asks} → ${words.writes}` : words.asks),
            made("p", { "aria-hidden": "true" }, words.read),
            asking,
            /** @type {any} */ (svg),
            read,
          ),
          matrix,
          made("p", { class: "viewer-scale", "aria-hidden": "true" }, `${words.weight} 0`, made("i"), "1"),
        ),
      );

      show = () => {
        /** @type {HTMLInputElement} */ (labels[chosen.row].firstChild).checked = true;
        lines.forEach((row, from) => row.forEach((path) => path.classList.toggle("chosen", from === chosen.row)));
        svg.append(...lines[chosen.row]); // above the others
        rows.forEach((row, from) => row.classList.toggle("chosen", from === chosen.row));
        cells.forEach((row, from) =>
          row.forEach((cell, to) => (cell.tabIndex = from === chosen.row && to === column ? 0 : -1)),
        );
        weights[chosen.row].forEach((weight, key) => {
          given[key].textContent = written(weight);
        });
        measures[0].term.textContent = words.row(named(chosen.row));
        measure(0, entropy[chosen.row]);
        sentence.textContent = said(weights[chosen.row]);
      };
      show();
    }

    /** A choice of layer and of head, where there are several: buttons for a few, a list for many. */
    function controls() {
      const numbered = (/** @type {any[]} */ all) => all.map((_, one) => ({ value: String(one), label: String(one + 1) }));
      const heads = numbered(data.weights[Number(chosen.layer)]);
      if (data.mean) heads.unshift({ value: MEAN, label: words.mean });
      const sets = [];
      for (const [what, options] of /** @type {const} */ ([["layer", numbered(data.weights)], ["head", heads]])) {
        const choose = (/** @type {string} */ value) => again(what, value);
        const make = options.length > FEW ? picker : choices;
        if (options.length > 1) sets.push(make(`${id}-${what}`, words[what], options, chosen[what], choose));
      }
      return sets.length ? [made("div", { class: "controls" }, ...sets)] : [];
    }

    /**
     * @param {"layer" | "head"} what
     * @param {string} value
     */
    function again(what, value) {
      chosen[what] = value;
      sentence.ariaLive = "polite";
      build();
      const control = body.querySelector(`select[name="${id}-${what}"], [name="${id}-${what}"]:checked`);
      /** @type {HTMLElement | null} */ (control)?.focus();
    }

    /** @param {ViewedAttention} other */
    function update(other) {
      data = other;
      sentence.ariaLive = "off"; // whoever brings other data says so
      chosen.layer = String(Math.min(Number(chosen.layer), data.weights.length - 1));
      chosen.row = Math.min(chosen.row, data.tokens.length - 1);
      const heads = data.weights[Number(chosen.layer)].length;
      const there = chosen.head === MEAN ? data.mean : Number(chosen.head) < heads;
      if (!there) chosen.head = data.mean ? MEAN : "0";
      build();
    }

    update(data);
    return { update };
  }

  book.attentionViewer = attentionViewer;
  book.widget("attention-viewer", (element, values, language) => {
    attentionViewer(element, values, language);
    const caption = book.replaces(element)?.querySelector("figcaption");
    if (caption) element.append(made("p", { class: "viewer-caption" }, ...caption.cloneNode(true).childNodes));
  });
})();
