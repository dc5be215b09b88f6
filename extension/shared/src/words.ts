/** The sentences of a card; the same as those of the static HTML that other front ends show. */

import type { Explanation, Reason } from "./diagnosis.js";
import { make } from "./dom.js";
import type { Filled, Shown } from "./read.js";
import { trans } from "./trans.js";

export function notKnown(): string {
  return trans.__("Not enough is known to say what this is.");
}

export function notPointedAt(): string {
  return trans.__("The cause is not known: nothing that was seen points to one.");
}

/** What guesses are called. */
export function guessed(): string {
  return trans.__("Possible, from your words alone");
}

/** What stands above a further failure of the same output. */
export function later(): string {
  return trans.__("Another failure in the same output; nothing connects it with the one above but their order:");
}

/** What the verdict says beyond the title. */
export function sentence(d: Shown): string {
  switch (d.verdict) {
    case "apart":
      return trans.__("The findings do not separate them.");
    case "echo":
      return trans.__(
        "Only an echo is seen: what is printed here comes from ranks that waited or from the launcher. Another rank " +
          "failed first or never came. Look for the earliest error of every rank, and for the rank that printed nothing.",
      );
    case "leaning":
      return trans.__("One symptom is ahead of the others, but the findings leave room for doubt.");
    default:
      return "";
  }
}

/** The verdict in a word, where the title is not all of it. */
export function verdictWord(verdict: Shown["verdict"]): string {
  switch (verdict) {
    case "leaning":
      return trans.__("leaning");
    case "echo":
      return trans.__("an echo");
    default:
      return "";
  }
}

/** How probable it is. */
export function bandWord(band: Filled<Explanation>["band"]): string {
  switch (band) {
    case "likely":
      return trans.__("likely");
    case "possible":
      return trans.__("possible");
    case "unlikely":
      return trans.__("unlikely");
    default:
      return "";
  }
}

/** Where a finding was seen. */
export function place(r: Filled<Reason>): string {
  const file = r.file.split("/").pop() ?? "";
  const at =
    r.source === "printed" && r.line
      ? trans.__("line %1 of the output", r.line)
      : r.source === "checked" && file && r.line
        ? `${file}:${r.line}`
        : origin(r.source);
  return [r.rank === null ? "" : trans.__("rank %1", r.rank), at].filter(Boolean).join(", ");
}

/** Where something is known from. */
export function origin(source: string): string {
  switch (source) {
    case "printed":
      return trans.__("the output");
    case "said":
      return trans.__("your description");
    case "exception":
      return trans.__("the exception");
    case "measured":
      return trans.__("measured");
    case "answered":
      return trans.__("your answer");
    case "similar":
      return trans.__("the text");
    case "checked":
      return trans.__("the program");
    default:
      return "";
  }
}

/** The line that answers a question in a cell; "" if a key or value is none, so that nothing else can be copied. */
export function answerLine(key: string, value: string): string {
  return NAME.test(key) && NAME.test(value) ? `%dtdebug answer ${key} ${value}` : "";
}

const NAME = /^\w[\w.+-]{0,79}$/;

/** Text in which `code` stands between backticks. */
export function prose(text: string): (Node | string)[] {
  return text.split(/`([^`]+)`/).map((each, i) => (i % 2 ? make("code", "", each) : each));
}
