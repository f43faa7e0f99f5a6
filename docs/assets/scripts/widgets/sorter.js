// @ts-check
/**
 * The trained sorter, on the reader's own digits: what it writes, how sure it is, where it looks; with its positions,
 * without them, and beside a model that never had any. The models are values of the examples that the page's directive
 * names under `loads`, the trained one first, and come when the reader asks for them.
 */
(function () {
  "use strict";

  const book = /** @type {any} */ (window).book;
  const QUIET = 700; // milliseconds without a keystroke before a result is read out

  /** @typedef {{ digits: number, sequences: number }} Right shares of new sequences that come out right */
  /**
   * What `sorting.positions_taken_away` returns.
   * @typedef {object} Values
   * @property {number[]} start
   * @property {number} length most digits that the model has places for
   * @property {number} trials
   * @property {Right} with
   * @property {Right} zeroed
   * @property {Right} without
   */
  /** @typedef {"with" | "zeroed" | "without"} Choice */
  /** @typedef {{ example: string, bytes: number }} Load */
  /** @typedef {{ scores: number[][], shares: number[][], written: number[], weights: number[][][][] }} Run */
  /** @typedef {{ run(digits: number[], blind?: boolean): Run, difference(): number, inputs: number }} Model */

  const WORDS = {
    en: {
      invite: "Type digits, and the trained model sorts them. It runs here, in your browser; nothing is sent anywhere.",
      load: /** @param {string} size */ (size) => `Load the model (${size})`,
      loading: "Loading the model …",
      failed: "The model could not be loaded. Try again?",
      digits: /** @param {number} most */ (most) => `Up to ${most} digits`,
      shuffle: "Shuffle",
      random: "Random digits",
      positions: "Positions",
      with: "as trained",
      zeroed: "set to zero in this model",
      without: "another model, trained without",
      further: /** @param {string} size */ (size) => ` (loads ${size})`,
      right: /** @param {string} trials @param {string} digits @param {string} sequences */ (trials, digits, sequences) =>
        `Of ${trials} new sequences it sorts ${sequences}, and gets ${digits} of the digits right.`,
      about: {
        with: "The sorter of this chapter, mended recipe, seed 0.",
        zeroed: "The same parameters, but each place gets the same vector: zero. It was never trained like this.",
        without: "Published recipe, seed 0, with no positions from the first step on.",
      },
      short: /** @param {number} most */ (most) =>
        `Every sequence that it was trained on had ${most} digits. A shorter one takes the first places, and nothing has taught the model to sort that.`,
      table: "What the model reads and writes, and how sure it is",
      place: "place",
      reads: "reads",
      writes: "writes",
      belongs: "belongs there",
      wrong: "wrong",
      shares: "Below: the share of certainty that each place gives to each digit, in %. A frame marks what belongs there.",
      attention: "Where each place looks",
      all: /** @param {string} written */ (written) => `It writes ${written}. All right.`,
      some: /** @param {string} written @param {string} places @param {number} count */ (written, places, count) =>
        `It writes ${written}. Wrong in ${count === 1 ? "place" : "places"} ${places}.`,
      empty: "Type a digit.",
      only: "Only digits can be sorted here.",
      check: /** @param {string} inputs @param {string} most */ (inputs, most) =>
        `Checked in this browser: on ${inputs} stored inputs its scores differ from PyTorch's by at most ${most}.`,
    },
    vi: {
      invite: "Hãy gõ các chữ số, mô hình đã huấn luyện sẽ sắp xếp ngay trong trình duyệt, không gửi gì đi đâu.",
      load: /** @param {string} size */ (size) => `Tải mô hình (${size})`,
      loading: "Đang tải mô hình …",
      failed: "Không tải được mô hình. Thử lại?",
      digits: /** @param {number} most */ (most) => `Nhiều nhất ${most} chữ số`,
      shuffle: "Xáo trộn",
      random: "Chữ số ngẫu nhiên",
      positions: "Vị trí",
      with: "như khi huấn luyện",
      zeroed: "đặt bằng không trong mô hình này",
      without: "mô hình khác, huấn luyện không có vị trí",
      further: /** @param {string} size */ (size) => ` (tải ${size})`,
      right: /** @param {string} trials @param {string} digits @param {string} sequences */ (trials, digits, sequences) =>
        `Trong ${trials} dãy mới, mô hình xếp đúng ${sequences} số dãy và ${digits} số chữ số.`,
      about: {
        with: "Mô hình sắp xếp của chương này, công thức đã sửa, seed 0.",
        zeroed: "Vẫn các tham số ấy, nhưng mọi vị trí nhận cùng một vectơ không. Mô hình chưa từng được huấn luyện như vậy.",
        without: "Công thức đã công bố, seed 0, không có vị trí ngay từ bước đầu.",
      },
      short: /** @param {number} most */ (most) =>
        `Mọi dãy dùng để huấn luyện đều có ${most} chữ số. Dãy ngắn hơn chiếm các vị trí đầu, và mô hình chưa từng học sắp xếp dãy như vậy.`,
      table: "Mô hình đọc gì, viết gì và chắc chắn đến đâu",
      place: "vị trí",
      reads: "đọc",
      writes: "viết",
      belongs: "đáp án",
      wrong: "sai",
      shares: "Bên dưới: mức chắc chắn mà mỗi vị trí dành cho từng chữ số, tính bằng %. Khung đánh dấu đáp án.",
      attention: "Mỗi vị trí nhìn vào đâu",
      all: /** @param {string} written */ (written) => `Mô hình viết ${written}. Đúng hết.`,
      some: /** @param {string} written @param {string} places */ (written, places) =>
        `Mô hình viết ${written}. Sai ở vị trí ${places}.`,
      empty: "Hãy gõ một chữ số.",
      only: "Ở đây chỉ sắp xếp được chữ số.",
      check: /** @param {string} inputs @param {string} most */ (inputs, most) =>
        `Đã kiểm tra trong trình duyệt này: trên ${inputs} đầu vào lưu sẵn, điểm số lệch so với PyTorch nhiều nhất ${most}.`,
    },
  };

  let sorters = 0;

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

  /** @param {number[]} row */
  const entropy = (row) => row.reduce((sum, p) => (p > 0 ? sum - p * Math.log(p) : sum), 0);

  /** @param {number[]} values */
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

  /** @param {number[][][][]} weights by layer, head, token that asks, token that is read */
  function looks(weights) {
    const entropies = weights.map((heads) => heads.map((rows) => rows.map(entropy)));
    return { weights, entropy: entropies, mean_entropy: entropies.map((heads) => heads.map(mean)) };
  }

  /**
   * What `book.attentionViewer` shows.
   * @param {number[]} digits
   * @param {Run} run
   */
  function attention(digits, run) {
    const means = run.weights.map((heads) => [
      digits.map((_, asks) => digits.map((_, read) => mean(heads.map((rows) => rows[asks][read])))),
    ]);
    return {
      tokens: digits.map(String),
      writes: run.written.map(String),
      uniform: Math.log(digits.length),
      ...looks(run.weights),
      mean: looks(means),
    };
  }

  /** @param {number[]} digits */
  function shuffled(digits) {
    const left = [...digits];
    return digits.map(() => left.splice(Math.floor(Math.random() * left.length), 1)[0]);
  }

  /**
   * @param {HTMLElement} element
   * @param {Values} values
   * @param {string} language
   */
  function start(element, values, language) {
    const words = WORDS[language === "vi" ? "vi" : "en"];
    const number = new Intl.NumberFormat(language);
    /** @param {number} share with more digits where it is nearly all */
    const percent = (share) =>
      new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: share > 0.99 ? 3 : 1 }).format(share);
    const size = new Intl.NumberFormat(language, { style: "unit", unit: "kilobyte", maximumFractionDigits: 0 });
    const [trained, blind] = (element.dataset.loads ?? "").split(" ").map((each) => {
      const [example, bytes] = each.split("=");
      return { example, bytes: Number(bytes) };
    });
    /** @param {Load} load */
    const kilobytes = (load) => size.format(load.bytes / 1000);

    /** @type {Map<string, Model>} */
    const models = new Map();
    /** @param {Load} load */
    async function model(load) {
      const found = models.get(load.example);
      if (found) return found;
      await book.load("assets/scripts/transformer.js");
      const fresh = book.transformer(await book.values(load.example));
      models.set(load.example, fresh);
      return fresh;
    }

    const button = made("button", { type: "button" }, words.load(kilobytes(trained)));
    const told = made("p", { class: "sorter-told", role: "status" });
    const body = made("div", { class: "sorter", role: "group", tabindex: -1, "aria-label": words.table });
    body.append(made("p", {}, words.invite), button, told);
    element.append(body);

    button.addEventListener("click", async () => {
      told.textContent = words.loading;
      button.setAttribute("disabled", "");
      try {
        const [first] = await Promise.all([
          model(trained),
          book.load("assets/scripts/widgets/attention-viewer.js"),
        ]);
        body.textContent = "";
        sorter(body, first);
        body.focus({ preventScroll: true });
      } catch {
        told.textContent = words.failed;
        button.removeAttribute("disabled");
      }
    });

    /**
     * @param {HTMLElement} body
     * @param {Model} first
     */
    function sorter(body, first) {
      const id = `sorter-${++sorters}`;
      /** @type {{ choice: Choice, model: Model, digits: number[] }} */
      const state = { choice: "with", model: first, digits: values.start };

      const input = /** @type {HTMLInputElement} */ (
        made("input", {
          id,
          type: "text",
          inputmode: "numeric",
          maxlength: values.length,
          autocomplete: "off",
          "aria-describedby": `${id}-note`,
        })
      );
      const shuffle = made("button", { type: "button" }, words.shuffle);
      const random = made("button", { type: "button" }, words.random);
      const about = made("p", { class: "sorter-about" });
      const note = made("p", { class: "sorter-note", id: `${id}-note` });
      const table = made("table", { class: "sorter-table" });
      const says = made("p", { class: "sorter-says" });
      const aloud = made("p", { class: "sorter-aloud", role: "status" });
      const seen = made("div", { class: "sorter-attention", role: "group", "aria-label": words.attention });
      const further = made("span", { class: "sorter-further" }, words.further(kilobytes(blind)));

      /** @param {Choice} choice */
      function option(choice) {
        const radio = /** @type {HTMLInputElement} */ (
          made("input", { type: "radio", name: `${id}-positions`, value: choice })
        );
        radio.checked = choice === "with";
        radio.addEventListener("change", () => choose(choice));
        return made("label", {}, radio, made("span", {}, words[choice], ...(choice === "without" ? [further] : [])));
      }
      const options = /** @type {Choice[]} */ (["with", "zeroed", "without"]).map(option);
      const choices = made("fieldset", { class: "sorter-choices" }, made("legend", {}, words.positions), ...options);

      body.append(
        made(
          "div",
          { class: "sorter-input" },
          made("label", { for: id }, words.digits(values.length)),
          input,
          shuffle,
          random,
        ),
        choices,
        about,
        says,
        note,
        table,
        aloud,
        made("p", { class: "sorter-title" }, words.attention),
        seen,
        made("p", { class: "sorter-check" }, checked(first)),
      );

      /** @param {Model} model */
      function checked(model) {
        const most = model.difference().toExponential(0).split("e");
        const power = most[1].replace("-", "−");
        const exponent = made("sup", {}, power);
        const parts = words.check(number.format(model.inputs), "\u0000").split("\u0000");
        const line = document.createDocumentFragment();
        line.append(parts[0], `${most[0]} × 10`, exponent, parts[1]);
        return line;
      }

      /** @type {{ update(data: object): void } | undefined} */
      let viewer;
      let waiting = 0;
      /** @param {string} [first] to be said before the result */
      function show(first = "") {
        const { choice, model, digits } = state;
        const { digits: ofDigits, sequences } = values[choice];
        about.textContent = `${words.about[choice]} ${words.right(
          number.format(values.trials),
          percent(ofDigits),
          percent(sequences),
        )}`;
        table.hidden = seen.hidden = digits.length === 0;
        note.textContent = digits.length && digits.length < values.length ? words.short(values.length) : "";
        if (digits.length === 0) {
          say(`${first} ${words.empty}`.trim());
          return;
        }
        const run = model.run(digits, choice === "zeroed");
        const ordered = [...digits].sort();
        const wrong = ordered.flatMap((digit, place) => (digit === run.written[place] ? [] : [place + 1]));
        table.style.setProperty("--filled", String(digits.length / values.length));
        fill(table, digits, run, ordered);
        const data = attention(digits, run);
        if (viewer) viewer.update(data);
        else viewer = book.attentionViewer(seen, data, language);
        const written = run.written.join(" ");
        const list = new Intl.ListFormat(language).format(wrong.map(String));
        const result = wrong.length ? words.some(written, list, wrong.length) : words.all(written);
        say(`${first} ${result}`.trim());
      }

      /** @param {string} text */
      function say(text) {
        says.textContent = text;
        clearTimeout(waiting);
        waiting = window.setTimeout(() => {
          aloud.textContent = [text, note.textContent].join(" ");
        }, QUIET);
      }

      /** @param {Choice} choice */
      async function choose(choice) {
        const before = state.choice;
        state.choice = choice;
        if (choice === "without") {
          says.textContent = words.loading;
          choices.setAttribute("disabled", "");
          try {
            state.model = await model(blind);
            further.remove();
          } catch {
            state.choice = before;
            options.forEach((label) => {
              const radio = /** @type {HTMLInputElement} */ (label.firstChild);
              radio.checked = radio.value === before;
            });
            choices.removeAttribute("disabled");
            say(words.failed);
            return;
          }
          choices.removeAttribute("disabled");
          options[2].querySelector("input")?.focus({ preventScroll: true });
        } else {
          state.model = first;
        }
        show();
      }

      /**
       * @param {number[]} digits
       * @param {string} [first] to be said before the result
       */
      function put(digits, first = "") {
        input.value = digits.join("");
        state.digits = digits;
        show(first);
      }

      input.addEventListener("input", () => {
        const digits = input.value.replace(/[^0-9]/g, "");
        const other = digits !== input.value;
        put(Array.from(digits, Number), other ? words.only : "");
      });
      shuffle.addEventListener("click", () => put(shuffled(state.digits)));
      random.addEventListener("click", () =>
        put(Array.from({ length: values.length }, () => Math.floor(10 * Math.random()))),
      );
      put(values.start);
    }

    /**
     * @param {HTMLElement} table
     * @param {number[]} digits
     * @param {Run} run
     * @param {number[]} ordered
     */
    function fill(table, digits, run, ordered) {
      /**
       * @param {string} name
       * @param {(place: number) => HTMLElement} cell
       * @param {string} kind
       */
      function row(name, cell, kind) {
        const cells = digits.map((_, place) => cell(place));
        return made("tr", { class: `sorter-${kind}` }, made("th", { scope: "row" }, name), ...cells);
      }
      const places = digits.map((_, place) => made("th", { scope: "col" }, String(place + 1)));
      const head = made("thead", {}, made("tr", {}, made("th", { scope: "col" }, words.place), ...places));

      const written = run.written.map((digit, place) => {
        const wrong = digit !== ordered[place];
        const mark = made("span", { class: "sorter-mark", role: "img", "aria-label": words.wrong }, "✗");
        return made("td", wrong ? { class: "sorter-wrong" } : {}, String(digit), ...(wrong ? [mark] : []));
      });
      const answers = made(
        "tbody",
        {},
        row(words.reads, (place) => made("td", {}, String(digits[place])), "reads"),
        row(words.writes, (place) => written[place], "writes"),
        row(words.belongs, (place) => made("td", {}, String(ordered[place])), "belongs"),
      );

      const whole = new Intl.NumberFormat(language, { maximumFractionDigits: 0 });
      const rows = run.shares[0].map((_, digit) =>
        row(
          String(digit),
          (place) => {
            const share = run.shares[place][digit];
            const shown = share >= 0.005 ? whole.format(100 * share) : "";
            const cell = made("td", {}, shown);
            cell.style.setProperty("--share", share.toFixed(3));
            if (digit === ordered[place]) cell.classList.add("sorter-right");
            return cell;
          },
          "share",
        ),
      );
      const told = made("tr", {}, made("td", { colspan: digits.length + 1, class: "sorter-legend" }, words.shares));
      table.replaceChildren(
        made("caption", { class: "sorter-aloud" }, words.table),
        head,
        answers,
        made("tbody", { class: "sorter-map" }, told, ...rows),
      );
    }
  }

  book.widget("sorter", start);
})();
