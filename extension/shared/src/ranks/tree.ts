/** The stacks of all ranks as one tree: frames that ranks share stand once. */

import { make } from "../dom.js";
import { trans } from "../trans.js";
import { Keyed, type Piece, setHidden, setText } from "./keyed.js";
import { Marked, type Stage } from "./pieces.js";
import type { ShownBranch, ShownFrame } from "./read.js";
import { placeName, rankNames } from "./words.js";

/** Branches of ranks that do nothing wrong are open this far down. */
const OPEN = 1;

/** A run of frames of one kind: the user's own, or a library's, which fold. */
interface Run {
  readonly own: boolean;
  readonly frames: readonly ShownFrame[];
}

export function branchPiece(stage: Stage, first: ShownBranch, depth = 0): Piece<ShownBranch> {
  const head = make("summary", "");
  const told = new Marked(head);
  const runs = new Keyed<Run>(
    make("div", ""),
    (run) => `${run.own} ${run.frames[0]?.at ?? ""}`,
    (run) => (run.own ? ownRun(stage) : libraryRun(stage)),
  );
  const below = new Keyed<ShownBranch>(
    make("div", "dtd-below"),
    (each) => each.ranks,
    (each) => branchPiece(stage, each, depth + 1),
  );
  const node = make("details", "dtd-branch", head, runs.node, below.node);
  node.open = depth < OPEN || leads(first);
  return {
    node,
    update(branch) {
      const at = branch.frames.filter((frame) => frame.own).at(-1)?.at ?? branch.frames.at(-1)?.at ?? "";
      const names = rankNames(branch.ranks, branch.count);
      told.update(branch.culprit ? "culprit" : "", [names, placeName(at)].filter(Boolean).join(" · "));
      node.classList.toggle("dtd-is-culprit", branch.culprit);
      runs.update(runsOf(branch.frames));
      below.update(branch.branches);
      setHidden(below.node, branch.branches.length === 0);
    },
  };
}

/** A culprit is in it, so it is open. */
function leads(branch: ShownBranch): boolean {
  return branch.culprit || branch.branches.some(leads);
}

function runsOf(frames: readonly ShownFrame[]): Run[] {
  const runs: { own: boolean; frames: ShownFrame[] }[] = [];
  for (const frame of frames) {
    const last = runs.at(-1);
    if (last?.own === frame.own) {
      last.frames.push(frame);
    } else {
      runs.push({ own: frame.own, frames: [frame] });
    }
  }
  return runs;
}

function ownRun(stage: Stage): Piece<Run> {
  const list = frames(stage);
  return { node: list.node, update: (run) => list.update(run.frames) };
}

function libraryRun(stage: Stage): Piece<Run> {
  const list = frames(stage);
  const label = make("span", "dtd-soft");
  const node = make("details", "dtd-library", make("summary", "", label), list.node);
  return {
    node,
    update(run) {
      const last = run.frames.at(-1)?.at ?? "";
      const count = run.frames.length;
      const told = trans._n("%1 frame of libraries, down to %2", "%1 frames of libraries, down to %2", count, last);
      setText(label, count === 1 ? last : told);
      list.update(run.frames);
    },
  };
}

function frames(stage: Stage): Keyed<ShownFrame> {
  return new Keyed(
    make("ul", "dtd-frames"),
    (frame) => frame.at,
    (frame) => stage.frame(frame),
  );
}
