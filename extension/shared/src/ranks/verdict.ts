/** The head of the view: which rank, what, where, how sure, and what else it could be. */

import { make } from "../dom.js";
import { Keyed, type Piece, setHidden, setText } from "./keyed.js";
import { Lines, Marked, type Stage, folding } from "./pieces.js";
import type { Shown, ShownFrame, ShownVerdict, State } from "./read.js";
import { duration, ranges, type Say } from "./words.js";

export class VerdictHead implements Piece<Shown> {
  readonly node: HTMLElement;
  readonly #title = make("p", "dtd-line-title");
  readonly #told: Marked;
  readonly #sure = make("span", "dtd-chip");
  readonly #where: Keyed<Site>;
  readonly #cell = make("p", "dtd-cell dtd-soft");
  readonly #place;
  readonly #code = make("code", "");
  readonly #runs = make("span", "");
  readonly #evidence: Lines;
  readonly #others: Lines;
  readonly #doubts: HTMLDetailsElement;
  readonly #frames: Keyed<ShownFrame>;
  readonly #stack: HTMLDetailsElement;

  constructor(private readonly stage: Stage) {
    const { say } = stage;
    this.#told = new Marked(this.#title);
    this.#title.append(" ", this.#sure);
    this.#where = new Keyed(
      make("ul", "dtd-where"),
      ({ ranks, at }) => `${ranks} ${at}`,
      ({ ranks, at }) => {
        const who = say(ranks.length === 1 ? "rank {1}" : "ranks {1}", ranges(ranks));
        return { node: make("li", "", make("strong", "", who), " ", stage.place(at).node), update: () => undefined };
      },
    );
    this.#place = stage.place();
    this.#cell.append(this.#place.node, " ", this.#code, " ", this.#runs);
    this.#evidence = new Lines(say("Seen"));
    this.#others = new Lines(say("It could also be"));
    this.#doubts = folding(say("Evidence and doubts"), false, this.#evidence.node, this.#others.node);
    this.#frames = new Keyed(
      make("ul", "dtd-frames"),
      (frame) => frame.at,
      (frame) => stage.frame(frame),
    );
    this.#stack = folding(say("Stack of the cell"), false, this.#frames.node);
    this.node = make("section", "dtd-verdict", this.#title, this.#where.node, this.#cell, this.#doubts, this.#stack);
    this.node.setAttribute("aria-label", say("Verdict"));
  }

  update(view: Shown): void {
    const { say } = this.stage;
    const { verdict, cell } = view;
    const found = verdict !== null && verdict.kind !== "none";
    this.#told.update(overall(view), (found && verdict.summary) || headline(say, view));
    this.node.classList.toggle("dtd-is-found", overall(view) === "culprit");
    const words = found ? confidence(say, verdict.confidence) : "";
    setText(this.#sure, words);
    setHidden(this.#sure, words === "");
    this.#where.update(found ? sites(verdict) : []);
    setHidden(this.#where.node, !found || verdict.where.length === 0);

    const number = cell?.number ?? null;
    const at = [number === null ? "" : `cell In[${number}]`, cell?.line ? `line ${cell.line}` : ""];
    this.#place.update(at.filter(Boolean).join(", "));
    setText(this.#code, cell?.code ?? "");
    setText(this.#runs, ran(say, view));
    setHidden(this.#cell, cell === null);
    this.#frames.update(cell?.frames ?? []);
    setHidden(this.#stack, !cell || cell.frames.length === 0);

    const others = found ? verdict.alternatives.map((each) => alternative(say, each)) : [];
    const seen = found ? [...verdict.evidence, ...stragglers(say, verdict)] : [];
    this.#evidence.update(seen);
    this.#others.update(others);
    setHidden(this.#doubts, others.length === 0 && seen.length === 0);
  }
}

function overall({ verdict, hangs, rows }: Shown): State {
  if ((verdict && verdict.kind !== "none") || rows.some((row) => row.state === "culprit")) {
    return "culprit";
  }
  return hangs === null ? "" : hangs ? "waits" : "runs";
}

function headline(say: Say, view: Shown): string {
  if (view.line) {
    return view.line;
  }
  if (view.hangs === null) {
    return say("Whether something stands still can't be told.");
  }
  return view.hangs ? say("Something stands still.") : say("Nothing stands still.");
}

function confidence(say: Say, of: number): string {
  if (of >= 0.9) {
    return say("almost certain");
  }
  return of >= 0.7 ? say("likely") : of >= 0.4 ? say("possible") : of > 0 ? say("a guess") : "";
}

/** Ranks that are in one place, and on one side: culprits, or those that wait. */
interface Site {
  readonly ranks: number[];
  readonly at: string;
}

/** The lines where culprits are come first. */
function sites(verdict: ShownVerdict): Site[] {
  const guilty = new Set(verdict.culprits);
  const found = new Map<string, Site>();
  const order = (rank: number) => (guilty.has(rank) ? rank - 2 ** 40 : rank);
  const named = [...verdict.where].sort((a, b) => order(a.rank) - order(b.rank));
  for (const { rank, file, line, function: inside } of named) {
    const at = file.startsWith("cell ")
      ? `${file}, line ${line}${inside ? `, in ${inside}` : ""}`
      : `${file}:${line} ${inside}`.trim();
    const key = `${guilty.has(rank)} ${at}`;
    const site = found.get(key) ?? { ranks: [], at };
    site.ranks.push(rank);
    found.set(key, site);
  }
  return [...found.values()];
}

function alternative(say: Say, each: ShownVerdict["alternatives"][number]): string {
  return each.refute ? say("{1} To tell: {2}", each.because, each.refute) : each.because;
}

function stragglers(say: Say, verdict: ShownVerdict): string[] {
  return verdict.stragglers.length > 0 ? [say("slow: ranks {1}", ranges(verdict.stragglers))] : [];
}

function ran(say: Say, { cell }: Shown): string {
  return cell?.seconds === null || cell === null ? "" : say("runs for {1}", duration(cell.seconds));
}
