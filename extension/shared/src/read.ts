/**
 * Reads a diagnosis out of data that nobody has checked: an old or a newer form, a notebook from elsewhere.
 * What is missing or of another type becomes empty; everything is bounded.
 */

import type { Answer, Asked, Card, Explanation, Fix, Known, Next, RankedSymptom, Reason, Seen, Spot, Step } from "./diagnosis.js";
import { trans } from "./trans.js";

/** The form that is read; a newer one is shown as far as it is understood. */
export const VERSION = 1;

/** Nothing is left out any more; a word that is not among the known ones is "". */
export type Filled<T> = T extends string ? T | "" : T extends object ? { readonly [K in keyof T]-?: Filled<T[K]> } : T;

export type Shown = Pick<
  Filled<Card>,
  "v" | "verdict" | "symptoms" | "advice" | "guesses" | "question" | "known" | "culprits" | "notes" | "happened" | "seen" | "ordinary" | "next" | "answer"
> & {
  /** Further failures of the same output. */
  readonly later: readonly Shown[];
};

/** Thrown with one line for the reader where nothing can be shown. */
export class Unreadable extends Error {}

const MOST = { symptoms: 5, reasons: 5, advice: 5, guesses: 2, values: 24, known: 60, culprits: 64, notes: 10, seen: 12, later: 3, spots: 4, ranks: 64 };
const SURE = ["certain", "likely", "own", "place", "possible", "stated", "unknown", "well"] as const;
const LONG = 600;
const LONGEST_DIFF = 6_000;
const BANDS = ["likely", "possible", "unlikely"] as const;
const VERDICTS = ["apart", "echo", "leaning", "settled", "unknown"] as const;
const STEPS = ["ask", "fix", "measure"] as const;
const GRADES = ["measured", "source", "printed", "quoted", "stated", "resembles"] as const;
const DIFFS = ["yours", "example"] as const;
const EFFORTS = ["edit", "glance", "hardware", "reinstall", "rerun", "restart"] as const;

/** Control characters and those that reorder or hide text. */
const HIDDEN =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]|\p{Cs}/gu;

type Fields = (key: string) => unknown;

/** The part of a diagnosis that is shown. */
export function read(data: unknown): Shown {
  const shown = whatIsThere(data);
  if (shown === null) {
    throw new Unreadable(trans.__("this output holds no diagnosis"));
  }
  if (shown.symptoms.length === 0 && shown.ordinary === "" && shown.advice.length === 0 && shown.question === null) {
    throw new Unreadable(
      shown.v > VERSION
        ? trans.__(
            "a newer dtdebug wrote this output (form %1), and it holds no symptom, cause or question that can be shown",
            shown.v,
          )
        : trans.__("this output holds no symptom, cause or question that can be shown"),
    );
  }
  return shown;
}

/** All that can be read of a diagnosis; further failures of the same output are read in the first of them only. */
function whatIsThere(data: unknown, isFirst = true): Shown | null {
  const field = fields(data);
  if (field === null) {
    return null;
  }
  return {
    v: whole(field("v")) ?? VERSION,
    verdict: oneOf(field("verdict"), VERDICTS),
    symptoms: list(field("symptoms"), MOST.symptoms, symptom),
    advice: list(field("advice"), MOST.advice, advice),
    guesses: list(field("guesses"), MOST.guesses, advice),
    question: question(field("question")),
    known: list(field("known"), MOST.known, known),
    culprits: list(field("culprits"), MOST.culprits, whole),
    notes: list(field("notes"), MOST.notes, (each) => text(each) || null),
    happened: text(field("happened")),
    seen: list(field("seen"), MOST.seen, claim),
    ordinary: text(field("ordinary")),
    next: next(field("next")),
    answer: answer(field("answer")),
    later: isFirst ? list(field("later"), MOST.later, (each) => whatIsThere(each, false)) : [],
  };
}

export function answer(data: unknown): Filled<Answer> | null {
  const field = fields(data);
  const headline = text(field?.("headline"));
  if (field === null || headline === "") {
    return null;
  }
  return {
    headline,
    event: text(field("event")),
    spots: list(field("spots"), MOST.spots, spot),
    why: text(field("why")),
    record: text(field("record"), 200),
    fix: fix(field("fix")),
    sure: oneOf(field("sure"), SURE),
    guess: text(field("guess")),
    next: step(field("next")),
    notes: list(field("notes"), MOST.notes, (each) => text(each) || null),
  };
}

function spot(data: unknown): Filled<Spot> | null {
  const field = fields(data);
  const mark = field?.("mark");
  const [begin, end] = Array.isArray(mark) ? [whole(mark[0]) ?? 0, whole(mark[1]) ?? 0] : [0, 0];
  return field === null
    ? null
    : {
        ranks: list(field("ranks"), MOST.ranks, whole),
        file: text(field("file"), 400),
        line: whole(field("line")) ?? 0,
        code: text(field("code"), 200),
        mark: [begin, end],
        state: text(field("state"), 200),
        values: list(field("values"), MOST.values, (pair): readonly [string, string] | null =>
          Array.isArray(pair) && text(pair[0], 100) ? [text(pair[0], 100), text(pair[1], 200)] : null,
        ),
      };
}

function fix(data: unknown): Filled<Fix> | null {
  const field = fields(data);
  const said = text(field?.("text"));
  return field === null || said === ""
    ? null
    : {
        text: said,
        file: text(field("file"), 400),
        line: whole(field("line")) ?? 0,
        diff: text(field("diff"), LONGEST_DIFF),
        proven: field("proven") !== false,
        tried: text(field("tried"), 500),
      };
}

function step(data: unknown): Filled<Step> | null {
  const field = fields(data);
  const said = text(field?.("text"));
  return field === null || said === "" ? null : { text: said, command: text(field("command")), outcome: text(field("outcome")) };
}

function claim(data: unknown): Filled<Seen> | null {
  const field = fields(data);
  const said = text(field?.("text"));
  return said === "" ? null : { text: said, record: text(field?.("record"), 200) };
}

function symptom(data: unknown): Filled<RankedSymptom> | null {
  const field = fields(data);
  const title = text(field?.("title"), 200);
  if (field === null || title === "") {
    return null;
  }
  return {
    code: text(field("code"), 40),
    probability: amount(field("probability")),
    id: text(field("id"), 100),
    title,
    band: oneOf(field("band"), BANDS),
    why: list(field("why"), MOST.reasons, reason),
  };
}

function reason(data: unknown): Filled<Reason> | null {
  const field = fields(data);
  const means = text(field?.("means"));
  if (field === null || means === "") {
    return null;
  }
  return {
    evidence: text(field("evidence"), 100),
    values: list(field("values"), MOST.values, (each) => text(each, 100) || null),
    means,
    source: text(field("source"), 40),
    weight: amount(field("weight")),
    line: whole(field("line")) ?? 0,
    words: text(field("words"), 160),
    rank: whole(field("rank")),
    file: text(field("file"), 400),
    of_account: field("of_account") === true,
  };
}

function next(data: unknown): Filled<Next> | null {
  const field = fields(data);
  const said = text(field?.("text"));
  if (field === null || said === "") {
    return null;
  }
  return {
    kind: oneOf(field("kind"), STEPS),
    text: said,
    command: text(field("command")),
    minutes: Math.max(0, amount(field("minutes"))),
    why: text(field("why")),
  };
}

function advice(data: unknown): Filled<Explanation> | null {
  const field = fields(data);
  const title = text(field?.("title"), 200);
  if (field === null || title === "") {
    return null;
  }
  return {
    symptom: text(field("symptom"), 40),
    cause: text(field("cause"), 100),
    title,
    pattern: text(field("pattern"), 100),
    probability: amount(field("probability")),
    band: oneOf(field("band"), BANDS),
    why: text(field("why")),
    fix: text(field("fix")),
    effort: oneOf(field("effort"), EFFORTS),
    minutes: Math.max(0, amount(field("minutes"))),
    diff: text(field("diff"), LONGEST_DIFF),
    diff_of: oneOf(field("diff_of"), DIFFS),
    file: text(field("file"), 400),
    line: whole(field("line")) ?? 0,
    in_python: field("in_python") === true,
    because: list(field("because"), MOST.reasons, reason),
    grade: oneOf(field("grade"), GRADES),
    named: field("named") === true,
    specific: field("specific") === true,
    tried: text(field("tried"), 500),
    works: field("works") === true,
    settled: field("settled") === true,
  };
}

function question(data: unknown): Filled<Asked> | null {
  const field = fields(data);
  const ask = text(field?.("ask"));
  if (field === null || ask === "") {
    return null;
  }
  return {
    key: text(field("key"), 100),
    ask,
    values: list(field("values"), MOST.values, (pair): readonly [string, string] | null => {
      const [value, means] = Array.isArray(pair) ? [text(pair[0], 100), text(pair[1])] : ["", ""];
      return value === "" ? null : [value, means || value];
    }),
    why: text(field("why")),
    how: text(field("how")),
    command: text(field("command")),
    saves: amount(field("saves")),
  };
}

function known(data: unknown): Filled<Known> | null {
  const field = fields(data);
  const [key, values] = [text(field?.("key"), 100), list(field?.("values"), MOST.values, (each) => text(each, 100) || null)];
  return key === "" || values.length === 0
    ? null
    : { key, values, source: text(field?.("source"), 40), words: text(field?.("words"), 160) };
}

/** Access to an object's own fields; null for anything else. */
export function fields(data: unknown): Fields | null {
  if (typeof data !== "object" || data === null || Array.isArray(data)) {
    return null;
  }
  return (key) => (Object.hasOwn(data, key) ? (data as Record<string, unknown>)[key] : undefined);
}

/** The first entries that can be read; how many are looked at is bounded too. */
export function list<T>(data: unknown, most: number, one: (data: unknown) => T | null): T[] {
  const found: T[] = [];
  for (const each of Array.isArray(data) ? data.slice(0, 2 * most) : []) {
    const entry = one(each);
    if (entry !== null && found.length < most) {
      found.push(entry);
    }
  }
  return found;
}

export function text(data: unknown, most = LONG): string {
  if (typeof data !== "string") {
    return "";
  }
  const clean = data.slice(0, most).replace(HIDDEN, "");
  return data.length > most ? `${clean}…` : clean;
}

export function amount(data: unknown): number {
  return typeof data === "number" && Number.isFinite(data) ? data : 0;
}

export function whole(data: unknown): number | null {
  return Number.isSafeInteger(data) && (data as number) >= 0 ? (data as number) : null;
}

export function oneOf<T extends string>(data: unknown, known: readonly T[]): T | "" {
  return known.find((each) => each === data) ?? "";
}
