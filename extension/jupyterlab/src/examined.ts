/** What `%dtdebug doctor` has said last in a notebook, as long as its card stands there. */

/** What the panel shows of it. */
export interface Examined {
  /** When, in ISO form. */
  readonly at: string;
  readonly state: "ok" | "warning" | "fault";
  /** Of what, and how it stands. */
  readonly line: string;
  /** The first findings. */
  readonly findings: readonly string[];
}

const MOST = 3;
const LONGEST = 300;

/** As data of a notebook, which may hold anything; null if it is no such answer. */
export function readExamined(data: unknown): Examined | null {
  const { v, at, state, line, findings } = Object(data) as Partial<Record<keyof Examined | "v", unknown>>;
  if (v !== 1 || typeof at !== "string" || Number.isNaN(Date.parse(at)) || typeof line !== "string") {
    return null;
  }
  if (state !== "ok" && state !== "warning" && state !== "fault") {
    return null;
  }
  const texts = Array.isArray(findings) ? findings.filter((each) => typeof each === "string") : [];
  const short = (text: string) => text.slice(0, LONGEST);
  return { at, state, line: short(line), findings: texts.slice(0, MOST).map(short) };
}

/** The latest of several answers; null if there is none. */
export function latest<T extends { readonly examined: Examined }>(all: readonly T[]): T | null {
  const when = ({ examined }: T) => Date.parse(examined.at);
  return all.reduce<T | null>((last, each) => (last && when(last) > when(each) ? last : each), null);
}
