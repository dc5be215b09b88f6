/** Folds ranks that are in the same state, operation and place. */

import type { ShownRow, State } from "./read.js";
import { ranges } from "./words.js";

export interface RankClass {
  readonly key: string;
  readonly state: State;
  readonly first: ShownRow;
  /** Indices of its rows. */
  readonly members: readonly number[];
  readonly ranks: string;
  /** When the one that is in the operation longest began it. */
  readonly since: number | null;
}

const ORDER: readonly State[] = ["culprit", "gone", "silent", "waits", "runs", ""];

/** Culprits first, then by how unusual the state is, then the largest first. */
export function fold(rows: readonly ShownRow[]): RankClass[] {
  const found = new Map<string, number[]>();
  rows.forEach((row, i) => {
    const key = `${row.state}|${row.op}|${row.seq}|${row.group}|${row.at}`;
    const members = found.get(key);
    if (members) {
      members.push(i);
    } else {
      found.set(key, [i]);
    }
  });
  const all = [...found].flatMap(([key, members]) => {
    const first = rows[members[0] ?? 0];
    return first ? [rankClass(key, first, members, rows)] : [];
  });
  const place = (each: RankClass): number => ORDER.indexOf(each.state);
  return all.sort((a, b) => place(a) - place(b) || b.members.length - a.members.length);
}

function rankClass(
  key: string,
  first: ShownRow,
  members: readonly number[],
  rows: readonly ShownRow[],
): RankClass {
  const ranks: number[] = [];
  let since: number | null = null;
  for (const i of members) {
    const row = rows[i];
    if (row && row.rank !== null) {
      ranks.push(row.rank);
    }
    if (row && row.since !== null && (since === null || row.since < since)) {
      since = row.since;
    }
  }
  return { key, state: first.state, first, members, ranks: ranges(ranks.sort((a, b) => a - b)), since };
}
