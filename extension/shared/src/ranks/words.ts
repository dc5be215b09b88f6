/** What is said of a rank. */

import { decimal, trans } from "../trans.js";
import type { ShownRow, State } from "./read.js";

/** The state of so many ranks, without their number: "waits" is one, "wait" are more. */
export function stateWord(state: State, count = 1): string {
  switch (state) {
    case "culprit":
      return trans._n("culprit", "culprits", count);
    case "waits":
      return trans._n("waits", "wait", count);
    case "runs":
      return trans._n("runs", "run", count);
    case "silent":
      return trans._n("does not answer", "do not answer", count);
    case "gone":
      return trans._n("has ended", "have ended", count);
    default:
      return trans.__("unknown");
  }
}

/** `all_reduce #41`, or "" outside any operation. */
export function operation(row: Pick<ShownRow, "op" | "seq">): string {
  return [row.op, row.seq === null ? "" : `#${row.seq}`].filter(Boolean).join(" ");
}

/** Elapsed seconds as `74 s`, `12 min`, `3.5 h`; "" where the moment is not known. */
export function elapsed(since: number | null, taken: number): string {
  return since === null || since <= 0 || taken < since ? "" : duration(taken - since);
}

export function duration(seconds: number): string {
  if (seconds < 120) {
    return trans.__("%1 s", Math.round(seconds));
  }
  return seconds < 7_200
    ? trans.__("%1 min", Math.round(seconds / 60))
    : trans.__("%1 h", decimal(seconds / 3_600, 1));
}

/** Bytes as GiB, or MiB where that is too coarse. */
export function bytes(amount: number): string {
  const gib = amount / 2 ** 30;
  return gib < 1
    ? trans.__("%1 MiB", Math.round(amount / 2 ** 20))
    : trans.__("%1 GiB", decimal(gib, gib < 100 ? 1 : 0));
}

export function rankName(row: Pick<ShownRow, "rank" | "pid">): string {
  if (row.rank !== null) {
    return trans.__("rank %1", row.rank);
  }
  return row.pid !== null ? trans.__("pid %1", row.pid) : trans.__("a process");
}

/** So many ranks, which are named where they are known. */
export function rankNames(ranks: string, count: number): string {
  if (ranks === "") {
    return trans._n("%1 process", "%1 processes", count);
  }
  return count === 1 ? trans.__("rank %1", ranks) : trans._n("rank %2 (%1)", "ranks %2 (%1)", count, ranks);
}

/** A place in code as readers are told it: where it is in a cell, the kernel names it in English words. */
export function placeName(at: string): string {
  return /^(cell )?In\[|^line \d+$/.test(at) ? at.split(", ").map(partOfPlace).join(", ") : at;
}

function partOfPlace(text: string): string {
  const [, kind, name] = /^(cell|line|in) (.+)$/.exec(text) ?? [];
  switch (kind) {
    case "cell":
      return trans.__("cell %1", name);
    case "line":
      return trans.__("line %1", name);
    case "in":
      return trans.__("in %1", name);
    default:
      return text;
  }
}

/** All that is known of one rank, in one line. */
export function describe(row: ShownRow, taken: number): string {
  const since = elapsed(row.since, taken);
  const op = operation(row);
  return [
    rankName(row),
    stateWord(row.state),
    op && (since ? trans.__("%1 for %2", op, since) : op),
    row.group && trans.__("group %1", row.group),
    row.step === null ? "" : trans.__("step %1", row.step),
    placeName(row.at),
    row.memory && trans.__("%1 allocated, %2 reserved", bytes(row.memory[0]), bytes(row.memory[1])),
    row.host && trans.__("host %1", row.host),
    row.rank === null || row.pid === null ? "" : trans.__("pid %1", row.pid),
  ]
    .filter(Boolean)
    .join(" · ");
}

/** Numbers in ascending order as `0-2,4-7`; no more than some ranges, for a reader. */
export function ranges(numbers: readonly number[], most = 5): string {
  const found: string[] = [];
  for (let i = 0; i < numbers.length; ) {
    const first = numbers[i] ?? 0;
    let last = first;
    for (i += 1; numbers[i] === last + 1; i += 1) {
      last += 1;
    }
    if (found.length === most) {
      return `${found.join(",")},…`;
    }
    found.push(first === last ? String(first) : `${first}-${last}`);
  }
  return found.join(",");
}
