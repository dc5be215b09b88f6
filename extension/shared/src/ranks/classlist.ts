/** The ranks in words, folded: what the grid shows, for those who read. */

import { make } from "../dom.js";
import { trans } from "../trans.js";
import type { RankClass } from "./classes.js";
import type { Grid } from "./grid.js";
import { Keyed, type Piece, setAttribute, setHidden, setText } from "./keyed.js";
import { Marked, type Stage } from "./pieces.js";
import { elapsed, operation, rankName, rankNames, stateWord } from "./words.js";

const MOST = 100;

export interface Folded {
  readonly classes: readonly RankClass[];
  readonly taken: number;
}

export class ClassList implements Piece<Folded> {
  readonly node: HTMLElement;
  readonly #list: Keyed<RankClass>;
  readonly #more = make("p", "dtd-soft");
  #taken = 0;
  #pressed: string | null = null;
  #shown: readonly RankClass[] = [];

  constructor(
    private readonly stage: Stage,
    private readonly grid: Grid,
  ) {
    this.#list = new Keyed(
      make("ul", "dtd-classes"),
      (each) => each.key,
      (first) => this.#line(first),
    );
    this.node = make("div", "", this.#list.node, this.#more);
    this.#list.node.setAttribute("aria-label", trans.__("Ranks that do the same"));
  }

  update({ classes, taken }: Folded): void {
    this.#taken = taken;
    this.#shown = classes;
    if (!classes.some((each) => each.key === this.#pressed)) {
      this.#pressed = null;
    }
    this.#list.update(classes.slice(0, MOST));
    const left = classes.length - MOST;
    setHidden(this.#more, left <= 0);
    setText(this.#more, left > 0 ? trans._n("and %1 more", "and %1 more", left) : "");
    this.#pointOut(this.#pressed);
  }

  #line(first: RankClass): Piece<RankClass> {
    const press = make("button", "dtd-class");
    press.type = "button";
    const told = new Marked(press);
    const place = this.stage.place();
    let now = first;
    press.addEventListener("click", () => {
      this.#pressed = this.#pressed === now.key ? null : now.key;
      this.#pointOut(this.#pressed);
      this.grid.choose(this.#pressed === null ? null : (now.members[0] ?? null));
      this.#list.update(this.#shown.slice(0, MOST));
    });
    press.addEventListener("pointerenter", () => this.#pointOut(now.key));
    press.addEventListener("pointerleave", () => this.#pointOut(this.#pressed));
    return {
      node: make("li", "", press, place.node),
      update: (next) => {
        now = next;
        told.update(next.state, sentence(next, this.#taken));
        place.update(next.first.at);
        setAttribute(press, "aria-pressed", String(this.#pressed === next.key));
      },
    };
  }

  #pointOut(key: string | null): void {
    this.grid.pointOut(this.#shown.find((each) => each.key === key)?.members ?? []);
  }
}

/** `ranks 0-2,4-7 (7) · wait 74 s in all_reduce #41`. */
function sentence({ first, members, ranks, state, since }: RankClass, taken: number): string {
  const who = members.length === 1 ? rankName(first) : rankNames(ranks, members.length);
  const op = operation(first);
  const doing = does(stateWord(state, members.length), op, elapsed(since, taken));
  return [who, doing, first.group && op && trans.__("group %1", first.group)].filter(Boolean).join(" · ");
}

function does(word: string, op: string, since: string): string {
  if (op === "") {
    return word;
  }
  return since ? trans.__("%1 %2 in %3", word, since, op) : trans.__("%1 in %2", word, op);
}
