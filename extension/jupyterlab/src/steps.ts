/** The way through the wizard as data: what failed, and what its reader has said since. All else follows from it. */

import type { Asked } from "./requests.js";

/** A failed cell as it was when the wizard began. */
export interface Subject {
  /** The cell's id in its notebook. */
  readonly id: string;
  /** How its reader knows it, such as `[3]`. */
  readonly number: string;
  readonly cell: string;
  readonly output: string;
  readonly ename: string;
  readonly evalue: string;
}

/** One thing that the reader did. */
export type Step =
  | { readonly kind: "answered"; readonly key: string; readonly value: string; readonly ask: string; readonly means: string }
  | { readonly kind: "skipped"; readonly key: string; readonly ask: string }
  | { readonly kind: "told"; readonly text: string };

/** Without a subject it goes by what its reader tells, and by what the kernel knows. */
export interface Course {
  readonly v: 1;
  /** When it began, in ISO form: its name in the history. */
  readonly at: string;
  readonly subject: Subject | null;
  readonly steps: readonly Step[];
}

const MOST_STEPS = 60;
const LONG = 16_000;
const SHORT = 300;

export function begin(subject: Subject | null, at: string = new Date().toISOString()): Course {
  return { v: 1, at, subject: subject && bounded(subject), steps: [] };
}

/** The course with one step more; more than anyone takes are not kept. */
export function after(course: Course, step: Step): Course {
  const bound = step.kind === "told" ? { ...step, text: step.text.slice(-LONG) } : step;
  return { ...course, steps: [...course.steps, bound].slice(-MOST_STEPS) };
}

export function back(course: Course): Course {
  return { ...course, steps: course.steps.slice(0, -1) };
}

/** What is asked of dtdebug; the latest answer to a question counts. */
export function asked({ subject, steps }: Course): Asked {
  const latest = new Map<string, string | null>();
  const [said, printed]: [string[], string[]] = [[], subject?.output ? [subject.output] : []];
  for (const step of steps) {
    if (step.kind === "told") {
      (isLog(step.text) ? printed : said).push(step.text);
    } else {
      latest.set(step.key, step.kind === "answered" ? step.value : null);
    }
  }
  const answers = Object.fromEntries([...latest].filter((each): each is [string, string] => each[1] !== null));
  return {
    cell: subject?.cell ?? "",
    output: printed.join("\n"),
    ename: subject?.ename ?? "",
    evalue: subject?.evalue ?? "",
    answers,
    unknown: [...latest].filter(([, value]) => value === null).map(([key]) => key),
    situation: said.join("\n"),
  };
}

/** Whether it was printed by a program rather than written by a person. */
export function isLog(text: string): boolean {
  return text.trim().split("\n").length > 3 || /^\s*(Traceback \(|\[?\w*[Rr]ank\s?\d+\]?:|\S*Error: )/m.test(text);
}

/**
 * A course that was kept.
 *
 * @throws Error if it is none.
 */
export function readCourse(data: unknown): Course {
  const { v, at, subject, steps } = fields(data);
  if (v !== 1 || !Array.isArray(steps) || Number.isNaN(Date.parse(text(at, 40)))) {
    throw new Error("no course");
  }
  const failed = subject === null ? null : fields(subject);
  return {
    v,
    at: text(at, 40),
    subject: failed && bounded(failed),
    steps: steps.slice(-MOST_STEPS).map(readStep),
  };
}

function readStep(data: unknown): Step {
  const { kind, key, value, ask, means, text: words } = fields(data);
  switch (kind) {
    case "answered":
      return { kind, key: text(key, SHORT), value: text(value, SHORT), ask: text(ask, SHORT), means: text(means, SHORT) };
    case "skipped":
      return { kind, key: text(key, SHORT), ask: text(ask, SHORT) };
    case "told":
      return { kind, text: text(words, LONG) };
    default:
      throw new Error("no step");
  }
}

/** The end of what was printed, where programs fail. */
function bounded(subject: { readonly [K in keyof Subject]?: unknown }): Subject {
  return {
    id: text(subject.id, SHORT),
    number: text(subject.number, SHORT),
    cell: text(subject.cell, LONG),
    output: text(subject.output, Infinity).slice(-LONG),
    ename: text(subject.ename, SHORT),
    evalue: text(subject.evalue, LONG),
  };
}

function fields(data: unknown): Record<string, unknown> {
  if (typeof data !== "object" || data === null || Array.isArray(data)) {
    throw new Error("no object");
  }
  return data as Record<string, unknown>;
}

function text(data: unknown, most: number): string {
  return typeof data === "string" ? data.slice(0, most) : "";
}
