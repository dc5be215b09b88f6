/** Which columns the time line has: those on which all agree fold, so that the divergence is what is seen. */

import type { ShownCall, ShownTimeline } from "./read.js";

/** alike: all called it and it has ended; apart: someone did not, or is in it; skip: `count` alike, left out. */
export type Column =
  | { readonly kind: "alike" | "apart"; readonly seq: number; readonly op: string }
  | { readonly kind: "skip"; readonly seq: number; readonly count: number };

/** What one lane has in one column. dropped: from before its record begins; later: it is still in an earlier call. */
export type Mark = "done" | "open" | "odd" | "missing" | "later" | "dropped";

/** Alike columns that stay visible before a divergence. */
const BEFORE = 4;
const MOST = 48;

export function columns(timeline: ShownTimeline): Column[] {
  const ops = new Map<number, Set<string>>();
  const apart = new Set<number>(timeline.parted === null ? [] : [timeline.parted]);
  for (const call of timeline.lanes.flatMap((lane) => lane.calls)) {
    const named = ops.get(call.seq) ?? new Set();
    ops.set(call.seq, named.add(call.op));
    if (call.odd || call.open) {
      apart.add(call.seq);
    }
  }
  const seqs = [...new Set([...ops.keys(), ...apart])].sort((a, b) => a - b);
  for (const seq of seqs) {
    const isAbsent = timeline.lanes.some((lane) => ["missing", "later"].includes(markAt(lane.calls, seq)));
    if (isAbsent || (ops.get(seq)?.size ?? 0) > 1) {
      apart.add(seq);
    }
  }
  const all = folded(seqs, apart, (seq) => [...(ops.get(seq) ?? [])].join(" / "));
  const first = all.findIndex((each) => each.seq === timeline.parted);
  return first < 0 ? all.slice(-MOST) : all.slice(Math.max(0, first - BEFORE - 1)).slice(0, MOST);
}

export function markAt(calls: readonly ShownCall[], seq: number): Mark {
  const call = calls.find((each) => each.seq === seq);
  if (call) {
    return call.odd ? "odd" : call.open ? "open" : "done";
  }
  if (calls.some((each) => each.open && each.seq < seq)) {
    return "later";
  }
  return calls.length > 0 && calls.every((each) => each.seq > seq) ? "dropped" : "missing";
}

function folded(seqs: readonly number[], apart: ReadonlySet<number>, op: (seq: number) => string): Column[] {
  const made: Column[] = [];
  let alike: number[] = [];
  const flush = (): void => {
    const skipped = alike.length > BEFORE + 1 ? alike.slice(0, -BEFORE) : [];
    if (skipped.length > 0) {
      made.push({ kind: "skip", seq: skipped[0] ?? 0, count: skipped.length });
    }
    made.push(...alike.slice(skipped.length).map((seq): Column => ({ kind: "alike", seq, op: op(seq) })));
    alike = [];
  };
  for (const seq of seqs) {
    if (!apart.has(seq)) {
      alike.push(seq);
    } else {
      flush();
      made.push({ kind: "apart", seq, op: op(seq) });
    }
  }
  flush();
  return made;
}
