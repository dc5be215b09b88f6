/** The head of the view: which rank, what, where, how sure, and what else it could be. */

import { changedLines } from "../diff.js";
import { make } from "../dom.js";
import { sureWord } from "../short.js";
import { trans } from "../trans.js";
import { bandWord } from "../words.js";
import { Keyed, type Piece, setHidden, setText } from "./keyed.js";
import { Lines, Marked, type Stage, folding } from "./pieces.js";
import type { Shown, ShownFix, ShownFrame, ShownSpot, ShownVerdict, State } from "./read.js";
import { duration, ranges } from "./words.js";

export class VerdictHead implements Piece<Shown> {
  readonly node: HTMLElement;
  readonly #title = make("p", "dtd-line-title");
  readonly #told: Marked;
  readonly #sure = make("span", "dtd-chip");
  readonly #where: Keyed<Site>;
  readonly #fix: Keyed<ShownFix>;
  readonly #cell = make("p", "dtd-cell dtd-soft");
  readonly #place;
  readonly #code = make("code", "");
  readonly #runs = make("span", "");
  readonly #evidence: Lines;
  readonly #others: Lines;
  readonly #doubts: HTMLDetailsElement;
  readonly #frames: Keyed<ShownFrame>;
  readonly #stack: HTMLDetailsElement;

  constructor(stage: Stage) {
    this.#told = new Marked(this.#title);
    this.#title.append(" ", this.#sure);
    this.#where = new Keyed(
      make("ul", "dtd-where"),
      ({ ranks, at, state, code }) => [ranks, at, state, code].join(" "),
      ({ ranks, at, state, code }) => {
        const who = ranks.length ? trans._n("rank %2", "ranks %2", ranks.length, ranges(ranks)) : "";
        const source = code ? make("pre", "dtd-source", make("code", "", code)) : null;
        const said = state ? ` ${state}` : null;
        return { node: make("li", "", make("strong", "", who), " ", stage.place(at).node, said, source), update: () => undefined };
      },
    );
    this.#fix = new Keyed(
      make("div", ""),
      ({ text, diff }) => `${text} ${diff}`,
      ({ text, diff }) => {
        const said = make("p", "", make("strong", "", trans.__("Fix")), " ", text);
        return { node: make("div", "dtd-fix", said, changedLines(diff, text)), update: () => undefined };
      },
    );
    this.#place = stage.place();
    this.#cell.append(this.#place.node, " ", this.#code, " ", this.#runs);
    this.#evidence = new Lines(trans.__("Seen"));
    this.#others = new Lines(trans.__("It could also be"));
    this.#doubts = folding(trans.__("Records and doubts"), false, this.#evidence.node, this.#others.node);
    this.#frames = new Keyed(
      make("ul", "dtd-frames"),
      (frame) => frame.at,
      (frame) => stage.frame(frame),
    );
    this.#stack = folding(trans.__("Stack of the cell"), false, this.#frames.node);
    this.node = make("section", "dtd-verdict", this.#title, this.#where.node, this.#fix.node, this.#cell, this.#doubts, this.#stack);
    this.node.setAttribute("aria-label", trans.__("Verdict"));
  }

  update(view: Shown): void {
    const { verdict, cell } = view;
    const found = verdict !== null && verdict.kind !== "none";
    const answer = found ? view.answer : null;
    const known = answer?.sure === "certain" || answer?.sure === "likely" ? answer : null;
    const told = known?.headline.replaceAll("`", "") || (found && verdict.summary) || answer?.headline || headline(view);
    this.#told.update(overall(view), told);
    this.node.classList.toggle("dtd-is-found", overall(view) === "culprit");
    const words = known ? sureWord(known) : found ? confidence(verdict.confidence) : "";
    setText(this.#sure, words);
    setHidden(this.#sure, words === "");
    const places = answer?.spots.length ? answer.spots.map(spot) : found ? sites(verdict) : [];
    this.#where.update(places);
    setHidden(this.#where.node, places.length === 0);
    this.#fix.update(answer?.fix ? [answer.fix] : []);

    const number = cell?.number ?? null;
    const at = [number === null ? "" : `cell In[${number}]`, cell?.line ? `line ${cell.line}` : ""];
    this.#place.update(at.filter(Boolean).join(", "));
    setText(this.#code, cell?.code ?? "");
    setText(this.#runs, ran(view));
    setHidden(this.#cell, cell === null);
    this.#frames.update(cell?.frames ?? []);
    setHidden(this.#stack, !cell || cell.frames.length === 0);

    const others = found ? verdict.alternatives.map(alternative) : [];
    const seen = found ? [...verdict.evidence, ...stragglers(verdict)] : [];
    this.#evidence.update(seen);
    this.#others.update(others);
    setHidden(this.#doubts, others.length === 0 && seen.length === 0);
  }
}

function overall({ verdict, hangs, rows }: Shown): State {
  if ((verdict && verdict.culprits.length > 0) || rows.some((row) => row.state === "culprit")) {
    return "culprit";
  }
  if (verdict?.kind === "not_understood") {
    return "waits";
  }
  return hangs === null ? "" : hangs ? "waits" : "runs";
}

function headline(view: Shown): string {
  if (view.line) {
    return view.line;
  }
  if (view.hangs === null) {
    return trans.__("Whether ranks hang is not known.");
  }
  return view.hangs ? trans.__("Ranks are not making progress.") : trans.__("Ranks are making progress.");
}

function confidence(of: number): string {
  if (of >= 0.9) {
    return trans.__("almost certain");
  }
  return of >= 0.7 ? bandWord("likely") : of >= 0.4 ? bandWord("possible") : of > 0 ? trans.__("a guess") : "";
}

/** Ranks that are in one place, and on one side: culprits, or those that wait. */
interface Site {
  readonly ranks: readonly number[];
  readonly at: string;
  readonly state: string;
  /** The line of the program; empty where only the verdict is known. */
  readonly code: string;
}

function spot({ ranks, file, line, state, code }: ShownSpot): Site {
  const at = file.startsWith("cell ") ? `${file}, line ${line}` : line ? `${file}:${line}` : file;
  return { ranks, at, state, code };
}

/** The lines where culprits are come first. */
function sites(verdict: ShownVerdict): Site[] {
  const guilty = new Set(verdict.culprits);
  const found = new Map<string, Site & { readonly ranks: number[] }>();
  const order = (rank: number) => (guilty.has(rank) ? rank - 2 ** 40 : rank);
  const named = [...verdict.sites].sort((a, b) => order(a.rank) - order(b.rank));
  for (const { rank, file, line, function: inside } of named) {
    const at = file.startsWith("cell ")
      ? `${file}, line ${line}${inside ? `, in ${inside}` : ""}`
      : `${file}:${line} ${inside}`.trim();
    const key = `${guilty.has(rank)} ${at}`;
    const site = found.get(key) ?? { ranks: [], at, state: "", code: "" };
    site.ranks.push(rank);
    found.set(key, site);
  }
  return [...found.values()];
}

function alternative(each: ShownVerdict["alternatives"][number]): string {
  return each.refute ? trans.__("%1 To tell: %2", each.because, each.refute) : each.because;
}

function stragglers({ stragglers: slow }: ShownVerdict): string[] {
  return slow.length > 0 ? [trans._n("slow: rank %2", "slow: ranks %2", slow.length, ranges(slow))] : [];
}

function ran({ cell }: Shown): string {
  return cell?.seconds === null || cell === null ? "" : trans.__("runs for %1", duration(cell.seconds));
}
