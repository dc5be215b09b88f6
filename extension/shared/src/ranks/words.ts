/** What is said of a rank, in words that a host can translate. */

import type { ShownRow, State } from "./read.js";

/** Translates a text, then fills `{1}`, `{2}` with the values. */
export type Say = (text: string, ...values: (string | number)[]) => string;

export function sayer(trans: (text: string) => string = (text) => text): Say {
  return (text, ...values) => trans(text).replace(/\{(\d)\}/g, (_, i: string) => String(values[Number(i) - 1] ?? ""));
}

/** The state by itself: "7 wait" counts, "waits" is one. */
export function stateWord(say: Say, state: State, count = 1): string {
  switch (state) {
    case "culprit":
      return count === 1 ? say("culprit") : say("culprits");
    case "waits":
      return count === 1 ? say("waits") : say("wait");
    case "runs":
      return count === 1 ? say("runs") : say("run");
    case "silent":
      return count === 1 ? say("does not answer") : say("do not answer");
    case "gone":
      return count === 1 ? say("has ended") : say("have ended");
    default:
      return say("unknown");
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
    return `${Math.round(seconds)} s`;
  }
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3_600).toFixed(1)} h`;
}

/** Bytes as GiB, or MiB where that is too coarse. */
export function bytes(amount: number): string {
  const gib = amount / 2 ** 30;
  return gib < 1 ? `${Math.round(amount / 2 ** 20)} MiB` : `${gib.toFixed(gib < 100 ? 1 : 0)} GiB`;
}

export function rankName(say: Say, row: Pick<ShownRow, "rank" | "pid">): string {
  return row.rank !== null ? say("rank {1}", row.rank) : row.pid !== null ? say("pid {1}", row.pid) : say("a process");
}

/** All that is known of one rank, in one line. */
export function describe(say: Say, row: ShownRow, taken: number): string {
  const since = elapsed(row.since, taken);
  const op = operation(row);
  return [
    rankName(say, row),
    stateWord(say, row.state),
    op && (since ? say("{1} for {2}", op, since) : op),
    row.group && say("group {1}", row.group),
    row.step === null ? "" : say("step {1}", row.step),
    row.at,
    row.memory && say("{1} allocated, {2} reserved", bytes(row.memory[0]), bytes(row.memory[1])),
    row.host && say("host {1}", row.host),
    row.rank === null || row.pid === null ? "" : say("pid {1}", row.pid),
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
