/** The sentences of a card; the same as those of the static HTML that other front ends show. */

import type { Reason } from "./diagnosis.js";
import { make } from "./dom.js";
import type { Filled, Shown } from "./read.js";

export const UNKNOWN = "Not enough is known to say what this is.";
export const ONLY_COUNTS = "no finding points to it in particular, only published counts";

/** What the verdict says beyond the title. */
export function sentence(d: Shown): string {
  switch (d.verdict) {
    case "apart":
      return "The findings do not separate them.";
    case "echo":
      return (
        "Only an echo is seen: what is printed here comes from ranks that waited or from the launcher. Another rank " +
        "failed first or never came. Look for the earliest error of every rank, and for the rank that printed nothing."
      );
    case "leaning":
      return "One symptom is ahead of the others, but the findings leave room for doubt.";
    default:
      return "";
  }
}

/** Where a finding was seen. */
export function place(r: Filled<Reason>): string {
  const at = r.source === "printed" && r.line ? `line ${r.line} of the output` : origin(r.source);
  return [r.rank === null ? "" : `rank ${r.rank}`, at].filter(Boolean).join(", ");
}

/** Where something is known from. */
export function origin(source: string): string {
  return PLACES.get(source) ?? "";
}

const PLACES = new Map([
  ["printed", "the output"],
  ["said", "your description"],
  ["exception", "the exception"],
  ["measured", "measured"],
  ["answered", "your answer"],
  ["similar", "the text"],
]);

/** The line that answers a question in a cell; "" if a key or value is none, so that nothing else can be copied. */
export function answerLine(key: string, value: string): string {
  return NAME.test(key) && NAME.test(value) ? `%dtdebug answer ${key} ${value}` : "";
}

const NAME = /^\w[\w.+-]{0,79}$/;

/** Text in which `code` stands between backticks. */
export function prose(text: string): (Node | string)[] {
  return text.split(/`([^`]+)`/).map((each, i) => (i % 2 ? make("code", "", each) : each));
}
