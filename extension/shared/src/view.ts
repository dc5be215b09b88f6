// Made from view.schema.json by extension/shared/generate.py: change neither by hand.

/** State of all ranks at one moment. */
export interface View {
  readonly v?: number;
  readonly road?: "kernel" | "outside";
  readonly taken?: number;
  readonly seconds?: number;
  readonly line?: string;
  readonly hangs?: boolean | null;
  readonly cell?: Cell | null;
  readonly verdict?: Verdict | null;
  readonly answer?: Answer | null;
  readonly rows?: readonly Row[];
  readonly tree?: Branch | null;
  readonly timeline?: Timeline | null;
  readonly devices?: readonly Device[];
  readonly notes?: readonly string[];
}

/** The cell that the kernel runs. */
export interface Cell {
  readonly number?: number | null;
  readonly line?: number | null;
  readonly code?: string;
  readonly seconds?: number | null;
  readonly busy?: number | null;
  readonly frames?: readonly FrameRow[];
}

/** One frame of a stack. */
export interface FrameRow {
  readonly at: string;
  readonly code?: string;
  readonly own?: boolean;
}

/** Verdict on ranks: which, what and where. The culprit is the rank that the others wait for. */
export interface Verdict {
  readonly kind: "dead" | "extra" | "fabric" | "gil_held" | "left" | "none" | "not_arrived" | "not_understood" | "replaced" | "skipped" | "wrong_dtype" | "wrong_root" | "wrong_size";
  readonly culprits?: readonly number[];
  readonly waiting?: readonly number[];
  readonly group?: GroupRef | null;
  readonly collective?: CollectiveRef | null;
  readonly sites?: readonly CallSite[];
  readonly confidence?: number;
  readonly summary?: string;
  readonly claims?: readonly Claim[];
  readonly evidence?: readonly string[];
  readonly alternatives?: readonly Alternative[];
  readonly stragglers?: readonly number[];
  readonly open?: boolean;
}

/** A process group by name and members. */
export interface GroupRef {
  readonly name: string;
  readonly ranks: readonly number[];
}

/** A collective by operation and sequence number. */
export interface CollectiveRef {
  readonly op: string;
  readonly seq: number | null;
}

/** Place of a rank in the user's own code. */
export interface CallSite {
  readonly rank: number;
  readonly file: string;
  readonly line: number;
  readonly function: string;
}

/** One statement about some ranks. Unknown fields keep their defaults and are not stated. */
export interface Claim {
  readonly what: "absent" | "at" | "called" | "came" | "compared" | "counted" | "disagree" | "ended" | "entered" | "finished" | "last" | "left" | "missing" | "moved" | "new" | "printed" | "raised" | "silent" | "source" | "stops" | "system" | "unfinished" | "unmoved" | "varied" | "waits";
  readonly ranks: readonly number[];
  readonly record: Record;
  readonly hosts?: readonly string[];
  readonly process?: string;
  readonly op?: string;
  readonly seq?: number | null;
  readonly group?: string;
  readonly of?: readonly number[];
  readonly file?: string;
  readonly line?: number;
  readonly function?: string;
  readonly words?: string;
  readonly seconds?: number | null;
  readonly count?: number | null;
}

/** Record that a claim rests on, so that it can be looked up. */
export interface Record {
  readonly source: "agent" | "cell" | "dump" | "exception" | "exit" | "kernel" | "native" | "output" | "run" | "source" | "stack" | "store" | "system";
  readonly line?: number;
  readonly path?: string;
  readonly rank?: number | null;
  readonly words?: string;
}

/** Another interpretation of the same records, and what would refute it. */
export interface Alternative {
  readonly kind: "dead" | "extra" | "fabric" | "gil_held" | "left" | "none" | "not_arrived" | "not_understood" | "replaced" | "skipped" | "wrong_dtype" | "wrong_root" | "wrong_size";
  readonly culprits: readonly number[];
  readonly because: string;
  readonly refute?: string;
}

/** The short answer; each fact stands in it once. */
export interface Answer {
  readonly headline: string;
  readonly event?: string;
  readonly spots?: readonly Spot[];
  readonly why?: string;
  readonly record?: string;
  readonly fix?: Fix | null;
  readonly sure?: "certain" | "likely" | "own" | "place" | "possible" | "stated" | "unknown" | "well";
  readonly guess?: string;
  readonly next?: Step | null;
  readonly notes?: readonly string[];
}

/** One place of the user's program, and the ranks that stand or failed there. */
export interface Spot {
  readonly ranks?: readonly number[];
  readonly file?: string;
  readonly line?: number;
  readonly code?: string;
  readonly mark?: readonly [number, number];
  readonly state?: string;
  readonly values?: readonly (readonly [string, string])[];
}

/** Remedy of the cause. */
export interface Fix {
  readonly text: string;
  readonly file?: string;
  readonly line?: number;
  readonly diff?: string;
  readonly proven?: boolean;
  readonly tried?: string;
}

/** The one next step, if the cause is unknown. */
export interface Step {
  readonly text: string;
  readonly command?: string;
  readonly outcome?: string;
}

/** One rank. */
export interface Row {
  readonly rank?: number | null;
  readonly state?: "culprit" | "gone" | "runs" | "silent" | "waits";
  readonly step?: number | null;
  readonly op?: string;
  readonly seq?: number | null;
  readonly group?: string;
  readonly since?: number | null;
  readonly at?: string;
  readonly memory?: readonly [number, number] | null;
  readonly host?: string;
  readonly pid?: number | null;
}

/** Frames that some ranks share, up to where they diverge. */
export interface Branch {
  readonly ranks: string;
  readonly count: number;
  readonly culprit?: boolean;
  readonly frames?: readonly FrameRow[];
  readonly branches?: readonly Branch[];
}

/** The latest collectives of one process group, from the flight recorder. */
export interface Timeline {
  readonly group: string;
  readonly lanes?: readonly Lane[];
  readonly parted?: number | null;
}

/** Ranks whose latest collectives are the same. */
export interface Lane {
  readonly ranks: string;
  readonly count: number;
  readonly culprit?: boolean;
  readonly calls?: readonly Call[];
}

/** One collective of one rank. */
export interface Call {
  readonly seq: number;
  readonly op: string;
  readonly open?: boolean;
  readonly odd?: boolean;
  readonly begun?: number;
  readonly at?: string;
}

/** One GPU; memory in bytes. */
export interface Device {
  readonly index: number;
  readonly name?: string;
  readonly total?: number;
  readonly used?: number;
  readonly utilization?: number | null;
  readonly users?: readonly (readonly [string, number])[];
}
