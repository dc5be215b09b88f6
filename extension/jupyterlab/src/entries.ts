/** The history of one notebook as data: newest first, bounded. */

import { type Shown, read } from "../../shared/src/read.js";

export interface Entry {
  /** A diagnosis that grows keeps its name. */
  readonly id: string;
  /** When, in ISO form. */
  readonly at: string;
  /** The cell as its reader knows it. */
  readonly number: string;
  readonly diagnosis: unknown;
}

const MOST = 50;
/** Characters of one notebook's history: it lies in one file with all that JupyterLab keeps. */
const LONGEST = 200_000;

/** The history with one diagnosis more; one that says nothing changes nothing. */
export function added(before: readonly Entry[], { diagnosis, ...rest }: Entry): readonly Entry[] {
  const shown = readable(diagnosis);
  if (!shown || (shown.verdict === "unknown" && !shown.happened)) {
    return before;
  }
  const entry: Entry = { ...rest, diagnosis: { ...shown, known: [], question: null } };
  const event = eventOf(shown);
  const isSame = (each: Entry) => each.id === rest.id || (each.number === rest.number && eventOf(readable(each.diagnosis)) === event);
  let room = LONGEST;
  return [entry, ...before.filter((each) => !isSame(each))]
    .slice(0, MOST)
    .filter((each) => (room -= JSON.stringify(each).length) > 0);
}

/** What happened: the wizard's diagnosis of a cell is of the same event as its card. */
function eventOf(shown: Shown | null): string {
  return shown?.happened || shown?.ordinary || "";
}

/**
 * A history that was kept.
 *
 * @throws Error if it is none.
 */
export function readEntries(data: unknown): readonly Entry[] {
  if (!Array.isArray(data)) {
    throw new Error("no list");
  }
  return data.slice(0, MOST).map((each: unknown) => {
    const { id, at, number, diagnosis } = Object(each) as Partial<Record<keyof Entry, unknown>>;
    if (typeof id !== "string" || typeof at !== "string" || Number.isNaN(Date.parse(at))) {
      throw new Error("no entry");
    }
    return { id, at, number: typeof number === "string" ? number : "", diagnosis };
  });
}

/** As much of a diagnosis as a card shows; null if it is none. */
export function readable(diagnosis: unknown): Shown | null {
  try {
    return read(diagnosis);
  } catch {
    return null;
  }
}
