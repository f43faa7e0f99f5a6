// @ts-check
/**
 * The forward pass of the trained sorter, as snippets/sorting.py and snippets/multi_head.py define it, in plain
 * JavaScript: `book.transformer(values)` gives the model that an example wrote out, `model.run(digits, blind)` runs it.
 * Parameters are float32 as they were trained; sums are made in float64, so the scores agree with PyTorch's up to its
 * own rounding.
 */
(function () {
  "use strict";

  /**
   * What `sorting.written_out` returns.
   * @typedef {object} Written
   * @property {[string, number[]][]} layout name and shape of each parameter, in the order of the weights
   * @property {string} weights little-endian float32 in base64
   * @property {number} heads
   * @property {number} epsilon of each LayerNorm
   * @property {number} factor of the embedding
   * @property {number[][]} inputs
   * @property {string} scores what PyTorch makes of these inputs, as text like the weights
   */
  /** @typedef {number[][]} Rows one row a token */
  /**
   * @typedef {object} Run
   * @property {Rows} scores (T, 10)
   * @property {Rows} shares their softmax, (T, 10)
   * @property {number[]} written the digit with the highest score, for each place
   * @property {number[][][][]} weights (layers, heads, T, T)
   */
  /**
   * @typedef {object} Model
   * @property {(digits: number[], blind?: boolean) => Run} run `blind` sets the position vectors to zero
   * @property {() => number} difference the largest between its scores and PyTorch's, over the inputs given with it
   * @property {number} inputs how many these are
   */

  /**
   * @param {string} text base64
   * @returns {Float32Array}
   */
  function numbers(text) {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    return Float32Array.from({ length: bytes.length / 4 }, (_, index) => view.getFloat32(4 * index, true));
  }

  /**
   * erf(x) = 2 / sqrt(pi) * exp(-x^2) * (x + 2 x^3 / 3 + 4 x^5 / 15 + ...): no term is negative for x > 0, so nothing
   * cancels and the sum is exact to the last digits of a float64.
   * @param {number} x
   */
  function erf(x) {
    if (Math.abs(x) > 6) return Math.sign(x);
    let term = x;
    let sum = x;
    for (let odd = 3; Math.abs(term) > 1e-17 * Math.abs(sum); odd += 2) {
      term *= (2 * x * x) / odd;
      sum += term;
    }
    return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
  }

  /** @param {number} x */
  const gelu = (x) => (x / 2) * (1 + erf(x / Math.SQRT2));

  /** @param {number[]} scores */
  function softmax(scores) {
    const highest = Math.max(...scores);
    const powers = scores.map((score) => Math.exp(score - highest));
    const sum = powers.reduce((total, power) => total + power, 0);
    return powers.map((power) => power / sum);
  }

  /**
   * @param {Rows} a
   * @param {Rows} b
   * @returns {Rows}
   */
  const plus = (a, b) => a.map((row, i) => row.map((x, j) => x + b[i][j]));

  /**
   * @param {Written} written
   * @returns {Model}
   */
  function transformer(written) {
    /** @type {Map<string, Float32Array>} */
    const parameters = new Map();
    const all = numbers(written.weights);
    let start = 0;
    for (const [name, shape] of written.layout) {
      const size = shape.reduce((product, length) => product * length, 1);
      parameters.set(name, all.subarray(start, (start += size)));
    }

    /** @param {string} name */
    function get(name) {
      const found = parameters.get(name);
      if (!found) throw new Error(`the model has no ${name}`);
      return found;
    }

    /**
     * x W^T + b, for each token.
     * @param {string} name
     * @param {Rows} rows
     * @returns {Rows}
     */
    function linear(name, rows) {
      const weight = get(`${name}.weight`);
      return rows.map((row) =>
        Array.from(get(`${name}.bias`), (bias, output) => {
          let sum = bias;
          for (let input = 0; input < row.length; input++) sum += weight[output * row.length + input] * row[input];
          return sum;
        }),
      );
    }

    /**
     * @param {string} name
     * @param {Rows} rows
     * @returns {Rows}
     */
    function norm(name, rows) {
      const [weight, bias] = [get(`${name}.weight`), get(`${name}.bias`)];
      return rows.map((row) => {
        const mean = row.reduce((sum, x) => sum + x, 0) / row.length;
        const variance = row.reduce((sum, x) => sum + (x - mean) ** 2, 0) / row.length;
        const size = Math.sqrt(variance + written.epsilon);
        return row.map((x, i) => ((x - mean) / size) * weight[i] + bias[i]);
      });
    }

    /**
     * @param {string} name
     * @param {Rows} rows (T, d_model)
     * @returns {[Rows, number[][][]]} (T, d_model) and the weights, (heads, T, T)
     */
    function attention(name, rows) {
      const [query, key, value] = ["query", "key", "value"].map((part) => linear(`${name}.${part}`, rows));
      const width = rows[0].length / written.heads;
      const joined = rows.map((row) => row.map(() => 0));
      /** @type {number[][][]} */
      const weights = [];
      for (let head = 0; head < written.heads; head++) {
        const [from, to] = [head * width, (head + 1) * width];
        const rowsOfHead = query.map((q) =>
          softmax(
            key.map((k) => {
              let dot = 0;
              for (let i = from; i < to; i++) dot += q[i] * k[i];
              return dot / Math.sqrt(width);
            }),
          ),
        );
        rowsOfHead.forEach((row, token) =>
          row.forEach((weight, other) => {
            for (let i = from; i < to; i++) joined[token][i] += weight * value[other][i];
          }),
        );
        weights.push(rowsOfHead);
      }
      return [linear(`${name}.output`, joined), weights];
    }

    /**
     * @param {number[]} digits at most as many as the model has places
     * @param {boolean} [blind]
     * @returns {Run}
     */
    function run(digits, blind = false) {
      const [embedding, places] = [get("embedding.weight"), get("places")];
      const width = embedding.length / 10;
      let x = digits.map((digit, place) =>
        Array.from({ length: width }, (_, i) => {
          const position = blind ? 0 : places[place * width + i];
          return embedding[digit * width + i] * written.factor + position;
        }),
      );
      /** @type {number[][][][]} */
      const weights = [];
      for (let layer = 0; parameters.has(`blocks.${layer}.norm1.weight`); layer++) {
        const block = `blocks.${layer}`;
        const [mixed, looked] = attention(`${block}.attention`, norm(`${block}.norm1`, x));
        x = plus(x, mixed);
        const wide = linear(`${block}.feed_forward.0`, norm(`${block}.norm2`, x)).map((row) => row.map(gelu));
        x = plus(x, linear(`${block}.feed_forward.2`, wide));
        weights.push(looked);
      }
      const scores = linear("head", parameters.has("norm.weight") ? norm("norm", x) : x);
      const best = scores.map((row) => row.indexOf(Math.max(...row)));
      return { scores, shares: scores.map(softmax), written: best, weights };
    }

    function difference() {
      const expected = numbers(written.scores);
      const found = written.inputs.flatMap((digits) => run(digits).scores.flat());
      return found.reduce((largest, score, i) => Math.max(largest, Math.abs(score - expected[i])), 0);
    }

    return { run, difference, inputs: written.inputs.length };
  }

  Object.assign(/** @type {any} */ (window).book, { transformer });
})();
