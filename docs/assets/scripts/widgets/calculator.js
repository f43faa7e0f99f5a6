// @ts-check
/**
 * What a Transformer of the reader's own sizes would hold: parameters by part, and the memory of its scores. The
 * formulas, the published sizes to start from and the stops of the sliders are values of the example; this file
 * evaluates the formulas, which are sums of products, just as `in_practice.plan` does.
 */
(function () {
  "use strict";

  const book = /** @type {any} */ (window).book;
  const QUIET = 700; // milliseconds without a change before the result is read out
  const PARTS = ["words", "positions", "attention", "feed_forward", "norms", "head"];
  const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte", "petabyte"];
  const OUTSIDE = ["position_rows", "type_rows", "other_norms", "pooler", "own_head"];

  /** @typedef {Record<string, number>} Sizes */
  /**
   * @typedef {object} Values
   * @property {Record<string, string>} formulas in the order of evaluation
   * @property {Record<string, Sizes>} sizes of published models, by name
   * @property {Record<string, number[]>} choices the stops of each slider; two of them are a box to tick
   */

  const WORDS = {
    en: {
      start: "Start from",
      outside: "Outside the blocks",
      exact: /** @param {string} name */ (name) => `${name}, exact number`,
      names: /** @type {Record<string, string>} */ ({
        layers: "Layers",
        decoder_layers: "Decoder layers that also read an encoder",
        d_model: "Width d_model",
        heads: "Heads",
        d_ff: "Feed-forward width d_ff",
        vocabulary: "Vocabulary",
        T: "Tokens in a text, T",
        position_rows: "Rows of learned positions",
        type_rows: "Token types",
        other_norms: "Norms besides the blocks'",
        pooler: "A pooler",
        own_head: "An output matrix of its own, not shared with the word table",
      }),
      parts: /** @type {Record<string, string>} */ ({
        words: "word table",
        positions: "positions, types",
        attention: "attention",
        feed_forward: "feed-forward",
        norms: "norms",
        head: "pooler, output",
      }),
      part: "part",
      parameters: "parameters",
      share: "share",
      total: /** @param {string} bytes */ (bytes) => `parameters, ${bytes} in float32`,
      scores: "Scores, if they are held in memory",
      one: "of one attention",
      every: /** @param {string} count */ (count) => `of all ${count} attentions, as training keeps them`,
      per: "For one sequence, in float32. A batch multiplies them.",
      each: /** @param {string} width */ (width) => `d_k = ${width} a head`,
      uneven: /** @param {string} width @param {string} heads */ (width, heads) =>
        `A width of ${width} does not divide into ${heads} equal heads.`,
      long: /** @param {string} rows @param {string} tokens */ (rows, tokens) =>
        `A table of ${rows} positions is too short for ${tokens} tokens.`,
      range: /** @param {string} name @param {string} low @param {string} high */ (name, low, high) =>
        `${name}: a whole number from ${low} to ${high}. The result is that of the last one.`,
      aloud: /** @param {string} total @param {string} one @param {string} every */ (total, one, every) =>
        `${total} parameters. Scores: ${one} for one attention, ${every} for all.`,
    },
    vi: {
      start: "Bắt đầu từ",
      outside: "Ngoài các khối",
      exact: /** @param {string} name */ (name) => `${name}, số chính xác`,
      names: /** @type {Record<string, string>} */ ({
        layers: "Số lớp",
        decoder_layers: "Số lớp decoder đọc thêm từ encoder",
        d_model: "Độ rộng d_model",
        heads: "Số head",
        d_ff: "Độ rộng feed-forward d_ff",
        vocabulary: "Kích thước từ vựng",
        T: "Số token của văn bản, T",
        position_rows: "Số hàng vị trí được học",
        type_rows: "Số loại token",
        other_norms: "Số LayerNorm ngoài các khối",
        pooler: "Có pooler",
        own_head: "Có ma trận đầu ra riêng, không dùng chung với bảng từ",
      }),
      parts: /** @type {Record<string, string>} */ ({
        words: "bảng từ",
        positions: "vị trí, loại token",
        attention: "attention",
        feed_forward: "feed-forward",
        norms: "LayerNorm",
        head: "pooler, đầu ra",
      }),
      part: "phần",
      parameters: "số tham số",
      share: "tỉ lệ",
      total: /** @param {string} bytes */ (bytes) => `tham số, ${bytes} ở float32`,
      scores: "Ma trận điểm số, nếu giữ trong bộ nhớ",
      one: "của một attention",
      every: /** @param {string} count */ (count) => `của cả ${count} attention, như khi huấn luyện`,
      per: "Cho một dãy, ở float32. Một batch nhân chúng lên.",
      each: /** @param {string} width */ (width) => `d_k = ${width} mỗi head`,
      uneven: /** @param {string} width @param {string} heads */ (width, heads) =>
        `Độ rộng ${width} không chia đều được cho ${heads} head.`,
      long: /** @param {string} rows @param {string} tokens */ (rows, tokens) =>
        `Bảng ${rows} vị trí không đủ cho ${tokens} token.`,
      range: /** @param {string} name @param {string} low @param {string} high */ (name, low, high) =>
        `${name}: một số nguyên từ ${low} đến ${high}. Kết quả vẫn là của số trước.`,
      aloud: /** @param {string} total @param {string} one @param {string} every */ (total, one, every) =>
        `${total} tham số. Điểm số: ${one} cho một attention, ${every} cho tất cả.`,
    },
  };

  let calculators = 0;

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
   * d_model as it is written in formulas.
   * @param {string} text
   */
  const typeset = (text) =>
    text.split(/\bd_(\w+)/).map((part, i) => (i % 2 ? made("span", {}, made("i", {}, "d"), made("sub", {}, part)) : part));

  /**
   * @param {Sizes} sizes
   * @param {Record<string, string>} formulas
   * @returns {Record<string, number>}
   */
  function plan(sizes, formulas) {
    const known = { ...sizes };
    for (const [name, formula] of Object.entries(formulas)) {
      const products = formula.split(" + ").map((product) => product.split(" * "));
      const numbers = products.map((factors) => factors.reduce((sum, each) => sum * (known[each] ?? Number(each)), 1));
      known[name] = numbers.reduce((sum, each) => sum + each, 0);
    }
    return known;
  }

  /**
   * @param {HTMLElement} element
   * @param {Values} values
   * @param {string} language
   */
  function start(element, values, language) {
    const words = WORDS[language === "vi" ? "vi" : "en"];
    const id = `calculator-${++calculators}`;
    const number = new Intl.NumberFormat(language);
    const percent = new Intl.NumberFormat(language, {
      style: "percent",
      minimumFractionDigits: 1,
      maximumFractionDigits: 1,
    });
    /** @param {number} count */
    function bytes(count) {
      const power = Math.max(0, Math.min(UNITS.length - 1, Math.floor(Math.log10(Math.max(count, 1)) / 3)));
      const format = { style: "unit", unit: UNITS[power], maximumSignificantDigits: 3 };
      return new Intl.NumberFormat(language, /** @type {Intl.NumberFormatOptions} */ (format)).format(
        count / 1000 ** power,
      );
    }

    const [, first] = Object.values(values.sizes); // the one that this book has opened
    /** @type {Sizes} */
    let sizes = { ...first };
    /** @type {Map<string, (value: number) => void>} */
    const controls = new Map();

    const total = made("p");
    const rows = made("tbody");
    const table = made(
      "table",
      { class: "calculator-parts" },
      made(
        "thead",
        {},
        made(
          "tr",
          {},
          made("th", { scope: "col" }, words.part),
          made("th", { scope: "col" }, words.parameters),
          made("th", { scope: "col" }, words.share),
          made("td", { class: "calculator-bar" }),
        ),
      ),
      rows,
    );
    const scores = made("dl");
    const trouble = made("p", { class: "calculator-trouble" });
    const aloud = made("p", { class: "calculator-aloud", role: "status" });
    const ofHeads = made("span", { class: "calculator-note" });
    let waiting = 0;

    /** @param {string} [wrong] what a control says of its input */
    function show(wrong) {
      const found = plan(sizes, values.formulas);
      total.replaceChildren(made("b", {}, number.format(found.total)), ` ${words.total(bytes(found.bytes))}`);
      rows.replaceChildren(
        ...PARTS.map((part) => {
          const share = found[part] / found.total;
          const bar = made("i");
          bar.style.setProperty("--share", `${100 * share}%`);
          return made(
            "tr",
            found[part] ? {} : { class: "none" },
            made("th", { scope: "row" }, words.parts[part]),
            made("td", {}, number.format(found[part])),
            made("td", {}, percent.format(share)),
            made("td", { class: "calculator-bar" }, bar),
          );
        }),
      );
      const [one, every] = [bytes(found.scores), bytes(found.all_scores)];
      scores.replaceChildren(
        made("div", {}, made("dt", {}, words.one), made("dd", {}, one)),
        made("div", {}, made("dt", {}, words.every(number.format(found.attentions))), made("dd", {}, every)),
      );
      const width = sizes.d_model / sizes.heads;
      ofHeads.replaceChildren(...(Number.isInteger(width) ? typeset(words.each(number.format(width))) : []));
      const troubles = [
        wrong ?? "",
        Number.isInteger(width) ? "" : words.uneven(number.format(sizes.d_model), number.format(sizes.heads)),
        sizes.position_rows && sizes.T > sizes.position_rows
          ? words.long(number.format(sizes.position_rows), number.format(sizes.T))
          : "",
      ].filter(Boolean);
      trouble.textContent = troubles.join(" ");
      for (const [name, button] of presets) {
        const same = Object.entries(values.sizes[name]).every(([size, value]) => sizes[size] === value);
        button.setAttribute("aria-pressed", String(same));
      }
      clearTimeout(waiting);
      waiting = window.setTimeout(() => {
        aloud.textContent = [words.aloud(number.format(found.total), one, every), ...troubles].join(" ");
      }, QUIET);
    }

    /** @param {string} name a size whose choices are two: yes or no */
    function box(name) {
      const input = /** @type {HTMLInputElement} */ (made("input", { type: "checkbox", id: `${id}-${name}` }));
      input.addEventListener("change", () => {
        sizes[name] = Number(input.checked);
        show();
      });
      controls.set(name, (value) => {
        input.checked = value === 1;
      });
      return made("p", { class: "calculator-box" }, input, made("label", { for: input.id }, words.names[name]));
    }

    /** @param {string} name */
    function slider(name) {
      const stops = values.choices[name];
      const label = words.names[name];
      const [low, high] = [stops[0], stops[stops.length - 1]];
      const range = /** @type {HTMLInputElement} */ (
        made("input", { type: "range", id: `${id}-${name}`, min: 0, max: stops.length - 1 })
      );
      const exact = /** @type {HTMLInputElement} */ (
        made("input", { type: "number", min: low, max: high, step: 1, "aria-label": words.exact(label) })
      );
      /** @param {number} value */
      function place(value) {
        const distances = stops.map((stop) => Math.abs(stop - value));
        range.value = String(distances.indexOf(Math.min(...distances)));
        range.setAttribute("aria-valuetext", number.format(value));
      }
      range.addEventListener("input", () => {
        sizes[name] = stops[Number(range.value)];
        range.setAttribute("aria-valuetext", number.format(sizes[name]));
        exact.value = String(sizes[name]);
        exact.setAttribute("aria-invalid", "false");
        show();
      });
      exact.addEventListener("input", () => {
        const right = exact.validity.valid && exact.value !== "";
        exact.setAttribute("aria-invalid", String(!right));
        if (right) {
          sizes[name] = Number(exact.value);
          place(sizes[name]);
        }
        show(right ? "" : words.range(label, number.format(low), number.format(high)));
      });
      controls.set(name, (value) => {
        place(value);
        exact.value = String(value);
        exact.setAttribute("aria-invalid", "false");
      });
      const note = name === "heads" ? [ofHeads] : [];
      return made(
        "div",
        { class: "calculator-size" },
        made("p", {}, made("label", { for: range.id }, ...typeset(label)), ...note),
        range,
        exact,
      );
    }

    /** @param {string} name */
    const control = (name) => (values.choices[name].length === 2 ? box(name) : slider(name));

    const presets = Object.keys(values.sizes).map((name) => {
      const button = made("button", { type: "button" }, name);
      button.addEventListener("click", () => set(values.sizes[name]));
      return /** @type {[string, HTMLElement]} */ ([name, button]);
    });

    /** @param {Sizes} given */
    function set(given) {
      sizes = { ...given };
      for (const [name, put] of controls) put(sizes[name]);
      show();
    }

    const outside = made(
      "div",
      { class: "calculator-outside", id: `${id}-outside`, role: "group", "aria-label": words.outside },
      ...OUTSIDE.map(control),
    );
    outside.hidden = true;
    const fold = made("button", { type: "button", "aria-expanded": "false", "aria-controls": outside.id }, words.outside);
    fold.addEventListener("click", () => {
      outside.hidden = !outside.hidden;
      fold.setAttribute("aria-expanded", String(!outside.hidden));
    });

    const names = Object.keys(values.choices);
    element.append(
      made(
        "div",
        { class: "calculator" },
        made(
          "div",
          { class: "calculator-start", role: "group", "aria-label": words.start },
          made("span", { "aria-hidden": "true" }, words.start),
          ...presets.map(([, button]) => button),
        ),
        made(
          "div",
          { class: "calculator-sizes" },
          ...names.filter((name) => !OUTSIDE.includes(name)).map(control),
          fold,
          outside,
        ),
        made("div", { class: "calculator-total" }, total, trouble),
        made(
          "div",
          { class: "calculator-results" },
          table,
          made("p", { class: "calculator-scores" }, words.scores),
          scores,
          made("p", { class: "calculator-note" }, words.per),
          aloud,
        ),
      ),
    );
    set(first);
  }

  book.widget("calculator", start);
})();
