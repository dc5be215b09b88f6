/** The ranks in words, folded: what the grid shows, for those who read. */

import { make } from "../dom.js";
import type { RankClass } from "./classes.js";
import type { Grid } from "./grid.js";
import { Keyed, type Piece, setAttribute, setHidden, setText } from "./keyed.js";
import { Marked, type Stage } from "./pieces.js";
import { elapsed, operation, rankName, type Say, stateWord } from "./words.js";

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
    this.#list.node.setAttribute("aria-label", stage.say("Ranks that do the same"));
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
    setText(this.#more, left > 0 ? this.stage.say("and {1} more", left) : "");
    this.#pointOut(this.#pressed);
  }

  #line(first: RankClass): Piece<RankClass> {
    const { say } = this.stage;
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
        told.update(next.state, sentence(say, next, this.#taken));
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
function sentence(say: Say, each: RankClass, taken: number): string {
  const { first, members } = each;
  const op = operation(first);
  const word = stateWord(say, each.state, members.length);
  const since = elapsed(each.since, taken);
  const doing = op ? say("{1} in {2}", since ? `${word} ${since}` : word, op) : word;
  return [who(say, each), doing, first.group && op && say("group {1}", first.group)].filter(Boolean).join(" · ");
}

function who(say: Say, { first, members, ranks }: RankClass): string {
  if (members.length === 1) {
    return rankName(say, first);
  }
  return ranks ? say("ranks {1} ({2})", ranks, members.length) : say("{1} processes", members.length);
}
