// Made from diagnosis.schema.json by extension/shared/generate.py: change neither by hand.

/** A diagnosis with its short answer, as front ends get it. */
export interface Card {
  readonly v?: number;
  readonly recognised: boolean;
  readonly verdict: "apart" | "echo" | "leaning" | "settled" | "unknown";
  readonly ordinary?: string;
  readonly symptoms: readonly RankedSymptom[];
  readonly advice: readonly Explanation[];
  readonly guesses?: readonly Explanation[];
  readonly next?: Next | null;
  readonly ruled_out?: readonly string[];
  readonly fix_patterns: readonly RankedPattern[];
  readonly question?: Asked | null;
  readonly known?: readonly Known[];
  readonly culprits?: readonly number[];
  readonly notes?: readonly string[];
  readonly happened?: string;
  readonly seen?: readonly Seen[];
  readonly later?: readonly Diagnosis[];
  readonly answer?: Answer | null;
}

/** A symptom with its probability. */
export interface RankedSymptom {
  readonly code: string;
  readonly probability: number;
  readonly id: string;
  readonly title: string;
  readonly band: "likely" | "possible" | "unlikely";
  readonly why?: readonly Reason[];
}

/** A finding that supports or contradicts a symptom or cause. */
export interface Reason {
  readonly evidence: string;
  readonly values?: readonly string[];
  readonly means: string;
  readonly source: string;
  readonly weight: number;
  readonly line?: number;
  readonly words?: string;
  readonly rank?: number | null;
  readonly file?: string;
  readonly of_account?: boolean;
}

/** A cause with its fix, and what it rests on. */
export interface Explanation {
  readonly symptom: string;
  readonly cause: string;
  readonly title: string;
  readonly pattern: string;
  readonly probability: number;
  readonly band: "likely" | "possible" | "unlikely";
  readonly why: string;
  readonly fix: string;
  readonly effort: "edit" | "glance" | "hardware" | "reinstall" | "rerun" | "restart";
  readonly minutes: number;
  readonly diff?: string;
  readonly diff_of?: "" | "example" | "yours";
  readonly file?: string;
  readonly line?: number;
  readonly in_python?: boolean;
  readonly because?: readonly Reason[];
  readonly grade?: "measured" | "printed" | "quoted" | "resembles" | "source" | "stated";
  readonly named?: boolean;
  readonly specific?: boolean;
  readonly tried?: string;
  readonly works?: boolean;
  readonly settled?: boolean;
}

/** The one thing to do next. */
export interface Next {
  readonly kind: "ask" | "fix" | "measure";
  readonly text: string;
  readonly command?: string;
  readonly minutes: number;
  readonly why?: string;
}

/** A fix pattern with its probability. */
export interface RankedPattern {
  readonly pattern: string;
  readonly probability: number;
}

/** The next question. */
export interface Asked {
  readonly key: string;
  readonly ask: string;
  readonly values: readonly (readonly [string, string])[];
  readonly why: string;
  readonly how: string;
  readonly command: string;
  readonly saves: number;
}

/** An observation that is known without asking, or was answered. */
export interface Known {
  readonly key: string;
  readonly values: readonly string[];
  readonly source: string;
  readonly words?: string;
}

/** A claim as a sentence, with its record. */
export interface Seen {
  readonly text: string;
  readonly record?: string;
}

/** The whole answer. All 30 symptoms and all fix patterns are ranked, best first. */
export interface Diagnosis {
  readonly v?: number;
  readonly recognised: boolean;
  readonly verdict: "apart" | "echo" | "leaning" | "settled" | "unknown";
  readonly ordinary?: string;
  readonly symptoms: readonly RankedSymptom[];
  readonly advice: readonly Explanation[];
  readonly guesses?: readonly Explanation[];
  readonly next?: Next | null;
  readonly ruled_out?: readonly string[];
  readonly fix_patterns: readonly RankedPattern[];
  readonly question?: Asked | null;
  readonly known?: readonly Known[];
  readonly culprits?: readonly number[];
  readonly notes?: readonly string[];
  readonly happened?: string;
  readonly seen?: readonly Seen[];
  readonly later?: readonly Diagnosis[];
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
