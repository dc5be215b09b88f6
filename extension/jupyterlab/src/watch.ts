/** Notices when a running cell hangs: asks outside the kernel first, and the kernel itself once. */

import { type ISignal, Signal } from "@lumino/signaling";

import type { Line } from "./ask.js";
import type { Look } from "./requests.js";

/** perhaps: the kernel is at something that this page has not sent. */
export type Running = "yes" | "perhaps" | "no";

/** What the watch goes by. */
export interface Cells {
  readonly running: Running;
  /** When the last sign of life came, in milliseconds; 0: nobody knows. */
  readonly quietSince: number;
  readonly asksUser: boolean;
  readonly changed: ISignal<Cells, void>;
  dispose(): void;
}

/** Whom it asks; a glance is null where the server has no part of ours. */
export interface Asks {
  glance(): Promise<Look | Line | null>;
  /** From outside alone where the kernel has not loaded dtdebug: to be asked would make it seem to rest. */
  look(kind: "state" | "hang", isForeign: boolean): Promise<Look | Line>;
}

export interface Options {
  /** Seconds without output after which a cell is looked at; 0: never. */
  readonly hangAfter: number;
}

const SECOND = 1_000;
const SOONEST = 5 * SECOND;
const LATEST = 15 * SECOND;
/** Where only the kernel itself can be asked, the pauses double up to this. */
const RAREST = 300 * SECOND;
/** Where the server sees a hang and the kernel does not, the kernel is asked again after so long: it may have looked too early. */
const AGAIN = 30 * SECOND;
const PATIENCE = 300 * SECOND;
/** Seconds that are told in minutes. */
const LONG = 600;

export class Watch {
  /** Something else is seen, or is asked for, or hangs, or goes on. */
  readonly changed = new Signal<this, void>(this);

  #seen: Look | null = null;
  #at = 0;
  #trouble: Line | null = null;
  #stands = false;
  #asking: Promise<void> | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pause = SOONEST;
  /** Counts the signs of life: what was asked before one tells nothing after it. */
  #silence = 0;
  /** What the server had said when the kernel itself was asked in this silence, and when that was. */
  readonly #asked = new Map<boolean | null, number>();
  /** The server has no part of ours. */
  #isOff = false;
  /** The server sees that the kernel has not loaded dtdebug: it knows of no cell. */
  #isForeign = false;
  #patientUntil = 0;
  #ran = false;
  #isDisposed = false;

  constructor(
    private readonly cells: Cells,
    private readonly asks: Asks,
    private readonly options: () => Options,
  ) {
    cells.changed.connect(this.#live, this);
    globalThis.document?.addEventListener("visibilitychange", this.#shown);
    this.#live();
  }

  dispose(): void {
    this.#isDisposed = true;
    clearTimeout(this.#timer);
    globalThis.document?.removeEventListener("visibilitychange", this.#shown);
    this.cells.dispose();
    Signal.clearData(this);
  }

  /** The latest that was seen; it stays when the cell has ended. */
  get seen(): Look | null {
    return this.#seen;
  }

  /** When that was; what it tells of seconds is of then. */
  get seenAt(): Date {
    return new Date(this.#at);
  }

  /** Why nothing was seen when it was last asked for. */
  get trouble(): Line | null {
    return this.#trouble;
  }

  /** A cell runs and something in it hangs. */
  get stands(): boolean {
    return this.#stands;
  }

  get runs(): boolean {
    return this.cells.running !== "no";
  }

  get isAsking(): boolean {
    return this.#asking !== null;
  }

  /** The user has asked for some minutes without a word. */
  get isPatient(): boolean {
    return Date.now() < this.#patientUntil;
  }

  /** What hangs, in few words, with the time that has passed since; else empty. */
  get line(): string {
    return this.#stands ? counted(this.#seen?.view.line ?? "", (Date.now() - this.#at) / SECOND) : "";
  }

  /** Looks now, because the user wants to know. */
  async refresh(kind: "state" | "hang"): Promise<void> {
    const silence = this.#silence;
    await this.#ask(kind, () => false);
    if (silence === this.#silence) {
      this.#stand(this.runs && !this.isPatient && (this.#seen?.view.hangs ?? this.#stands));
    }
  }

  /** Says nothing and asks nothing for five minutes, or until the cell has ended. */
  keepWaiting(): void {
    this.#patientUntil = Date.now() + PATIENCE;
    this.#asked.clear();
    this.#stands = false;
    this.changed.emit();
    this.#plan(PATIENCE);
  }

  /** The settings are others. */
  reset(): void {
    this.#plan(0);
  }

  #live(): void {
    this.#silence += 1;
    this.#asked.clear();
    this.#pause = SOONEST;
    if (this.#ran !== this.runs) {
      this.#ran = this.runs;
      this.#patientUntil = 0;
      this.#seen = this.runs ? null : this.#seen;
      this.#stands = false;
      this.changed.emit();
      this.#plan(0);
    } else {
      this.#stand(false);
    }
  }

  readonly #shown = (): void => {
    if (!document.hidden && this.#timer === undefined) {
      this.#plan(0);
    }
  };

  /** No timer while no cell runs. */
  #plan(pause: number): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.runs && this.options().hangAfter > 0 && !this.#isDisposed) {
      this.#timer = setTimeout(() => void this.#tick(), Math.max(pause, this.#rest, this.#patientUntil - Date.now()));
    }
  }

  /** Milliseconds until the cell has been silent for long. */
  get #rest(): number {
    return Math.max(0, this.cells.quietSince + this.options().hangAfter * SECOND - Date.now());
  }

  async #tick(): Promise<void> {
    this.#timer = undefined;
    if (globalThis.document?.hidden) {
      return; // nobody sees it: #shown goes on
    }
    const isDue = this.#rest === 0;
    if (isDue && !this.cells.asksUser) {
      await this.#examine();
    }
    if (this.#timer === undefined) {
      this.#plan(isDue ? this.#pause : 0);
    }
  }

  /** From outside first, which costs the kernel nothing; the kernel itself once for each new answer. */
  async #examine(): Promise<void> {
    const silence = this.#silence;
    const isOver = () => silence !== this.#silence || this.#isDisposed || this.isPatient;
    const answer = this.#isOff ? null : await this.asks.glance();
    if (isOver()) {
      return;
    }
    this.#isOff = answer === null;
    const glance = answer && "view" in answer ? answer : null;
    this.#isForeign = glance !== null && !glance.view.cell;
    this.#pause = glance ? Math.min(LATEST, 1.5 * this.#pause) : Math.min(RAREST, 2 * this.#pause);
    const said = glance?.view.hangs ?? null;
    const hasRanks = Boolean(glance?.view.rows?.length);
    if (glance && !this.#stands && (said || (hasRanks && !this.#seen))) {
      this.#see(glance);
    }
    if (glance && !glance.view.cell && !hasRanks && this.cells.running === "perhaps") {
      this.#pause = RAREST; // the kernel is slow for another reason
    }
    if (glance && said === false) {
      if (this.#stands) {
        this.#see(glance);
      }
      this.#stand(false);
    } else if (!glance || ((!this.#stands || this.#isSecondHand) && (said || hasRanks) && !this.#hasAsked(said))) {
      this.#asked.set(said, Date.now());
      await this.#ask("hang", isOver);
      if (!isOver()) {
        this.#stand((this.#trouble ? null : this.#seen?.view.hangs) ?? said ?? false);
      }
    }
  }

  /** The kernel was too busy to answer in time: what is seen comes from outside, where less is known. */
  get #isSecondHand(): boolean {
    return this.#seen?.view.road === "outside";
  }

  #hasAsked(said: boolean | null): boolean {
    const at = this.#asked.get(said);
    return at !== undefined && !(said && Date.now() - at >= AGAIN);
  }

  async #ask(kind: "state" | "hang", isOver: () => boolean): Promise<void> {
    this.#asking ??= this.#look(kind, isOver);
    await this.#asking;
  }

  async #look(kind: "state" | "hang", isOver: () => boolean): Promise<void> {
    await null; // so that it is known to be asking
    this.changed.emit();
    const answer = await this.asks.look(kind, this.#isForeign && this.runs);
    this.#asking = null;
    if ("line" in answer) {
      this.#trouble = answer;
    } else if (!isOver()) {
      this.#see(answer);
    }
    this.changed.emit();
  }

  #see(look: Look): void {
    this.#seen = look;
    this.#at = Date.now();
    this.#trouble = null;
    this.changed.emit();
  }

  #stand(stands: boolean): void {
    if (stands !== this.#stands) {
      this.#stands = stands;
      this.changed.emit();
    }
  }
}

/** `rank 0 waits 74 s in all_reduce #41`, so many seconds later. */
export function counted(line: string, passed: number): string {
  return line.replace(/\b(\d+) (s|min)\b/, (_, count: string, unit: string) => {
    const seconds = Number(count) * (unit === "s" ? 1 : 60) + Math.max(0, passed);
    return unit === "s" && seconds < LONG ? `${Math.floor(seconds)} s` : `${Math.floor(seconds / 60)} min`;
  });
}
