/**
 * Our texts in the reader's language; English until a host says otherwise.
 *
 * One translation for all views, not one handed down through each: a page has one language, and what is bundled for a
 * page holds this module once. Call it as `trans.__("…")` or `trans._n("…", "…", count)`, with the texts as literals
 * and when something is shown, not when a module is loaded: jupyterlab-translate finds texts by that form. A text is
 * always said with `__` or always with `_n`, for a catalogue knows it in one form only.
 */

/** The part of JupyterLab's `TranslationBundle` that is used. */
export interface Trans {
  /** The text, with the values in place of `%1`, `%2`. */
  __(text: string, ...values: unknown[]): string;
  /** The text for so many; the count is `%1`, the values follow. */
  _n(one: string, many: string, count: number, ...values: unknown[]): string;
}

export const ENGLISH: Trans = {
  __: (text, ...values) => text.replace(/%(\d)/g, (_, i: string) => String(values[Number(i) - 1] ?? "")),
  _n: (one, many, count, ...values) => ENGLISH.__(count === 1 ? one : many, count, ...values),
};

export let trans: Trans = ENGLISH;

/** From now on what is shown is said in these words; once, before anything is shown. */
export function translateBy(words: Trans): void {
  trans = words;
}

/** A number with so many digits after its point, as the language of the page writes it. */
export function decimal(value: number, digits: number): string {
  const { lang } = document.documentElement;
  return value.toLocaleString(lang || "en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
