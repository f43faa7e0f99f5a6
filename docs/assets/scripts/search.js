// @ts-check
/**
 * How the search reads words: English and Vietnamese, with diacritics and without. The theme's search loads a file by
 * the name of its language; this one stands in the place of its Vietnamese (executed/hook.py puts it there), which cuts "nhưng" out
 * and finds "chú ý" only under its own letters.
 *
 * A word with diacritics is kept in both its forms. Who types "đường" finds đường, who types "duong" finds it too, and
 * letters that are composed of several characters (NFD) are the same as others.
 */
(function () {
  "use strict";

  /** @type {any} */
  const lunr = /** @type {any} */ (self).lunr;
  const OPTIONAL = lunr.Query.presence.OPTIONAL;
  const WHOLE_WORD = 2;
  const START = 0.01;
  const AROUND = /^[^\p{L}\p{N}_]+|[^\p{L}\p{N}_]+$/gu;

  /**
   * A word without diacritics.
   * @param {string} word
   */
  const plain = (word) => word.normalize("NFD").replace(/\p{M}/gu, "").replace(/đ/g, "d");

  /**
   * The parts of a name in code: `attention.four_tokens` is found under "four" and "tokens" as well.
   * @param {string} word
   */
  const parts = (word) => (/[._]/.test(word) ? word.split(/[._]/).filter((part) => part.length > 2) : []);

  /**
   * What a word of a page is found under.
   * @param {any} token
   */
  function forms(token) {
    const word = token.toString().normalize("NFC").replace(AROUND, "");
    if (!word || !lunr.stopWordFilter(word)) return null;
    const all = new Set([word, ...parts(word)]);
    for (const form of [...all]) all.add(plain(form));
    return [...all].map((form) => token.clone(() => form));
  }

  /** @type {Record<string, unknown>} Where each word of the book stands, from the time that the book has been read. */
  let index = {};

  /** @this {any} */
  lunr.vi = function () {
    this.pipeline.reset();
    this.pipeline.add(forms);
    this.searchPipeline.reset();
    index = this.invertedIndex;
  };
  lunr.Pipeline.registerFunction(forms, "forms");

  /**
   * A word that stands nowhere as it was typed, such as "hoà" where pages say "hòa", is looked for without diacritics.
   * @param {string} term what was typed, with a star behind it where more letters may follow
   */
  function looked(term) {
    const word = term.normalize("NFC");
    const start = word.replace(/\*$/, "");
    const bare = plain(start);
    return bare === start || Object.keys(index).some((known) => known.startsWith(start)) ? word : bare;
  }

  const clause = lunr.Query.prototype.clause;
  /**
   * @this {any}
   * @param {any} one
   */
  lunr.Query.prototype.clause = function (one) {
    one.term = looked(one.term);
    return clause.call(this, one);
  };

  /**
   * Several words together: those that say nothing are left out, and where the book has a word as it was typed, others
   * that only begin like it count for little, or for nothing if it is short. The "y" of "chu y" does not begin "yourself".
   * @param {any[]} clauses
   */
  function weighed(clauses) {
    const begun = clauses.filter(({ term, presence }) => term.endsWith("*") && presence === OPTIONAL);
    if (begun.length < 2) return clauses;
    const telling = begun.filter(({ term }) => lunr.stopWordFilter(term.slice(0, -1)));
    for (const clause of telling) {
      const word = clause.term.slice(0, -1);
      if (!(word in index)) continue;
      if (word.length < 3) clause.term = word;
      else clause.boost = START;
    }
    return telling.length ? clauses.filter((clause) => !begun.includes(clause) || telling.includes(clause)) : clauses;
  }

  const query = lunr.Index.prototype.query;
  /**
   * A whole word counts more than the start of one. A place found under several forms of its word is marked once: twice
   * would garble the result.
   * @this {any}
   * @param {(query: any) => void} fill
   */
  lunr.Index.prototype.query = function (fill) {
    const results = query.call(this, (/** @type {any} */ asked) => {
      fill.call(asked, asked);
      asked.clauses = weighed(asked.clauses);
      for (const { term, presence, fields } of [...asked.clauses]) {
        if (term.endsWith("*") && presence === OPTIONAL) {
          asked.clause({ term: term.slice(0, -1), fields, boost: WHOLE_WORD });
        }
      }
    });
    for (const { matchData } of results) {
      /** @type {Record<string, Set<number>>} */
      const seen = {};
      for (const fields of Object.values(matchData.metadata)) {
        for (const [field, found] of Object.entries(fields)) {
          const before = (seen[field] ??= new Set());
          found.position = found.position.filter((/** @type {number} */ place) => !before.has(place) && before.add(place));
        }
      }
    }
    return results;
  };
})();
