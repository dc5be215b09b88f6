/** Reads a look at the ranks out of data that nobody has checked: what is missing or wrong becomes empty; bounded. */

import { amount, answer, fields, type Filled, list, oneOf, text, whole } from "../read.js";
import type {
  Alternative,
  Branch,
  Call,
  CallSite,
  Cell,
  CollectiveRef,
  Device,
  Fix,
  FrameRow,
  GroupRef,
  Lane,
  Row,
  Spot,
  Timeline,
  Verdict,
  View,
} from "../view.js";

/** The form that is read; a newer one is shown as far as it is understood. */
export const VERSION = 1;

/** Claims come as sentences, in `evidence`. */
export type ShownVerdict = Filled<Omit<Verdict, "claims">>;
export type Shown = Omit<Filled<View>, "verdict"> & { readonly verdict: ShownVerdict | null };
export type ShownRow = Filled<Row>;
export type ShownBranch = Filled<Branch>;
export type ShownTimeline = Filled<Timeline>;
export type ShownLane = Filled<Lane>;
export type ShownCall = Filled<Call>;
export type ShownDevice = Filled<Device>;
export type ShownFrame = Filled<FrameRow>;
export type ShownCell = Filled<Cell>;
export type ShownFix = Filled<Fix>;
export type ShownSpot = Filled<Spot>;
export type State = ShownRow["state"];

const MOST = {
  rows: 16_384,
  ranks: 1_024,
  lanes: 64,
  calls: 64,
  devices: 64,
  users: 16,
  frames: 64,
  branches: 32,
  nodes: 256,
  deep: 24,
  lines: 12,
  notes: 20,
};
const STATES = ["culprit", "waits", "runs", "silent", "gone"] as const;
const ROADS = ["kernel", "outside"] as const;
const KINDS = [
  "dead",
  "extra",
  "fabric",
  "gil_held",
  "left",
  "none",
  "not_arrived",
  "not_understood",
  "replaced",
  "skipped",
  "wrong_dtype",
  "wrong_root",
  "wrong_size",
] as const;

type Reader<T> = (data: unknown) => T;

/** Reads an object field by field; null for what is none, or is without what it can't be shown without. */
function object<T>(readers: { readonly [K in keyof T]: Reader<T[K] | null> }, needed?: keyof T): Reader<T | null> {
  const each = Object.entries(readers) as [keyof T & string, Reader<unknown>][];
  return (data) => {
    const field = fields(data);
    if (field === null) {
      return null;
    }
    const made: { [key: string]: unknown } = {};
    for (const [key, reader] of each) {
      made[key] = reader(field(key));
    }
    return needed !== undefined && (made[needed as string] ?? "") === "" ? null : (made as T);
  };
}

function many<T>(most: number, one: Reader<T | null>): Reader<T[]> {
  return (data) => list(data, most, one);
}

function words(most: number): Reader<string> {
  return (data) => text(data, most);
}

function among<T extends string>(known: readonly T[]): Reader<T | ""> {
  return (data) => oneOf(data, known);
}

const line: Reader<string | null> = (data) => text(data) || null;
const yes: Reader<boolean> = (data) => data === true;
const number: Reader<number | null> = (data) => (Number.isFinite(data) ? (data as number) : null);
const count: Reader<number> = (data) => whole(data) ?? 0;
const bytes: Reader<number> = (data) => Math.max(0, amount(data));
const said: Reader<string> = (data) => text(data);
const short = words(80);
const long = words(200);
const ranks = many(MOST.ranks, whole);
const kind = among(KINDS);

const frames = many(MOST.frames, object<ShownFrame>({ at: long, code: long, own: yes }, "at"));

const row = object<ShownRow>({
  rank: whole,
  state: (data) => (data === undefined ? "runs" : oneOf(data, STATES)),
  step: whole,
  op: short,
  seq: whole,
  group: short,
  since: number,
  at: long,
  memory: (data) => (Array.isArray(data) && data.length === 2 ? [bytes(data[0]), bytes(data[1])] : null),
  host: short,
  pid: whole,
});

const site = object<Filled<CallSite>>({ rank: count, file: long, line: count, function: short }, "file");

const alternative = object<Filled<Alternative>>({ kind, culprits: ranks, because: said, refute: said }, "because");

const verdict = object<ShownVerdict>({
  kind,
  culprits: ranks,
  waiting: ranks,
  group: object<Filled<GroupRef>>({ name: short, ranks }),
  collective: object<Filled<CollectiveRef>>({ op: short, seq: whole }),
  sites: many(MOST.lines, (data) => (whole(fields(data)?.("rank")) === null ? null : site(data))),
  confidence: amount,
  summary: said,
  evidence: many(MOST.lines, line),
  alternatives: many(MOST.lines, alternative),
  stragglers: ranks,
  open: yes,
});

const call = object<ShownCall>({ seq: whole, op: short, open: yes, odd: yes, begun: amount, at: long }, "seq");

const lane = object<ShownLane>({ ranks: short, count, culprit: yes, calls: many(MOST.calls, call) });

const device = object<ShownDevice>(
  {
    index: whole,
    name: short,
    total: bytes,
    used: bytes,
    utilization: whole,
    users: many(MOST.users, (data): readonly [string, number] | null =>
      Array.isArray(data) && short(data[0]) ? [short(data[0]), bytes(data[1])] : null,
    ),
  },
  "index",
);

/** A tree of so many branches at most, and so deep. */
function branches(nodes: { left: number }, depth: number): Reader<ShownBranch | null> {
  return (data) => {
    nodes.left -= 1;
    return nodes.left < 0 || depth > MOST.deep
      ? null
      : object<ShownBranch>({
          ranks: short,
          count,
          culprit: yes,
          frames,
          branches: many(MOST.branches, branches(nodes, depth + 1)),
        })(data);
  };
}

const timeline = object<ShownTimeline>({ group: short, lanes: many(MOST.lanes, lane), parted: whole });

const view = object<Shown>({
  v: (data) => whole(data) ?? VERSION,
  road: among(ROADS),
  taken: amount,
  seconds: amount,
  line: long,
  hangs: (data) => (typeof data === "boolean" ? data : null),
  cell: object<ShownCell>({ number: whole, line: whole, code: long, seconds: number, busy: number, frames }),
  verdict,
  answer,
  rows: many(MOST.rows, row),
  tree: (data) => branches({ left: MOST.nodes }, 0)(data),
  timeline: (data) => {
    const made = timeline(data);
    return made?.lanes.length ? made : null;
  },
  devices: many(MOST.devices, device),
  notes: many(MOST.notes, line),
});

/** The look; null if this is none at all. */
export function read(data: unknown): Shown | null {
  return view(data);
}
