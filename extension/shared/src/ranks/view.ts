/** All that is seen of the ranks, as one element that is given one look after the other. */

import { make } from "../dom.js";
import { STYLE } from "../style.js";
import { trans } from "../trans.js";
import { fold } from "./classes.js";
import { ClassList } from "./classlist.js";
import { deviceList } from "./devices.js";
import { Grid } from "./grid.js";
import { Keyed, setHidden, setText } from "./keyed.js";
import { folding, Lines, type RanksHost, Stage } from "./pieces.js";
import { read, type Shown, type ShownBranch, type State, VERSION } from "./read.js";
import { RANKS_STYLE } from "./style.js";
import { TimelineTable } from "./timeline.js";
import { branchPiece } from "./tree.js";
import { VerdictHead } from "./verdict.js";
import { stateWord } from "./words.js";

export type { RanksHost } from "./pieces.js";

const STATES: readonly State[] = ["culprit", "gone", "silent", "waits", "runs", ""];

/** Shows a `View`, whatever the data is; never throws. What the reader folds and chooses stays from look to look. */
export class RanksView {
  readonly node: HTMLElement;
  readonly #stage: Stage;
  readonly #problem = make("p", "dtd-problem");
  readonly #head: VerdictHead;
  readonly #grid: Grid;
  readonly #classes: ClassList;
  readonly #timeline: TimelineTable;
  readonly #tree: Keyed<ShownBranch>;
  readonly #devices: ReturnType<typeof deviceList>;
  readonly #notes: Lines;
  readonly #parts: { readonly [name in "ranks" | "timeline" | "tree" | "devices"]: HTMLDetailsElement };
  readonly #count = make("span", "dtd-count");
  readonly #all: HTMLElement;

  constructor(host: RanksHost = {}) {
    this.#stage = new Stage(host);
    this.#head = new VerdictHead(this.#stage);
    this.#grid = new Grid();
    this.#classes = new ClassList(this.#stage, this.#grid);
    this.#timeline = new TimelineTable();
    this.#tree = new Keyed(
      make("div", ""),
      () => "root",
      (first) => branchPiece(this.#stage, first),
    );
    this.#devices = deviceList();
    this.#notes = new Lines(trans.__("Notes"));
    this.#parts = {
      ranks: folding(trans.__("Ranks"), true, this.#grid.node, this.#classes.node),
      timeline: folding(trans.__("Time line"), true, this.#timeline.node),
      tree: folding(trans.__("Stacks"), true, this.#tree.node),
      devices: folding(trans.__("GPUs"), true, this.#devices.node),
    };
    this.#parts.ranks.querySelector("summary")?.append(this.#count);
    this.#all = make("div", "dtd-all", this.#head.node, ...Object.values(this.#parts), this.#notes.node);
    this.node = make("div", "dtd dtd-ranks", make("style", "", STYLE + RANKS_STYLE), this.#problem, this.#all);
    this.node.setAttribute("role", "region");
    this.node.setAttribute("aria-label", trans.__("Ranks of the distributed run"));
    this.update(null);
  }

  update(data: unknown): void {
    try {
      const view = read(data);
      if (view) {
        this.#show(view);
      }
      this.#tell(view ? this.#newer(view) : trans.__("No look at the ranks yet."), view !== null);
    } catch {
      this.#tell(trans.__("This look at the ranks can't be read."), false);
    }
  }

  /** Ends what outlives the element: observers of its size and of the theme. */
  dispose(): void {
    this.#grid.dispose();
    this.node.remove();
  }

  #show(view: Shown): void {
    const { rows, taken, timeline, tree, devices } = view;
    this.#head.update(view);
    const counted = this.#counted(view);
    setText(this.#count, counted);
    this.#grid.update(rows, taken, counted);
    this.#classes.update({ classes: fold(rows), taken });
    if (timeline) {
      this.#timeline.update({ timeline, taken });
    }
    this.#tree.update(tree ? [tree] : []);
    this.#devices.update(devices);
    this.#notes.update(view.notes);
    setHidden(this.#parts.ranks, rows.length === 0);
    setHidden(this.#parts.timeline, timeline === null);
    setHidden(this.#parts.tree, tree === null);
    setHidden(this.#parts.devices, devices.length === 0);
  }

  /** `8 ranks: 1 culprit, 7 wait`. */
  #counted({ rows }: Shown): string {
    const counts = STATES.map((state) => [state, rows.filter((row) => row.state === state).length] as const)
      .filter(([, count]) => count > 0)
      .map(([state, count]) => `${count} ${stateWord(state, count)}`);
    return trans._n("%1 rank: %2", "%1 ranks: %2", rows.length, counts.join(", "));
  }

  #newer(view: Shown): string {
    return view.v > VERSION
      ? trans.__("A newer dtdebug made this look (form %1); shown as far as it is understood.", view.v)
      : "";
  }

  #tell(problem: string, shown: boolean): void {
    setText(this.#problem, problem);
    setHidden(this.#problem, problem === "");
    setHidden(this.#all, !shown);
  }
}
