/** Small elements that several parts of the view have. */

import { button, make } from "../dom.js";
import { Keyed, type Piece, setHidden, setText } from "./keyed.js";
import { mark, setMark } from "./marks.js";
import type { ShownFrame, State } from "./read.js";
import { placeName } from "./words.js";

/** What the host of the view can do for its reader; a place is a link only if the host opens places. */
export interface RanksHost {
  /** Shows the line of code at a place such as `cell In[3], line 6, in train` or `train.py:6 train`. */
  openPlace?(at: string): void;
}

/** What every part of the view is given. */
export class Stage {
  readonly #opens: ((at: string) => void) | null;

  constructor(host: RanksHost) {
    this.#opens = host.openPlace?.bind(host) ?? null;
  }

  /** A place in code; a button where the host can open it. */
  place(at = ""): Piece<string> {
    const opens = this.#opens;
    let shown = at;
    const node = opens ? button(placeName(at), () => opens(shown)) : make("span", "", placeName(at));
    node.className = opens ? "dtd-place dtd-link" : "dtd-place";
    node.hidden = at === "";
    return {
      node,
      update(next) {
        shown = next;
        setText(node, placeName(next));
        setHidden(node, next === "");
      },
    };
  }

  frame(first: ShownFrame): Piece<ShownFrame> {
    const at = this.place(first.at);
    const code = make("code", "", first.code);
    return {
      node: make("li", first.own ? "dtd-own" : "", at.node, code),
      update(next) {
        at.update(next.at);
        setText(code, next.code);
        setHidden(code, next.code === "");
      },
    };
  }
}

/** Lines under a label; hidden where there are none. */
export class Lines implements Piece<readonly string[]> {
  readonly node: HTMLElement;
  readonly #lines: Keyed<string>;

  constructor(label: string) {
    this.#lines = new Keyed(
      make("ul", ""),
      (line) => line,
      (line) => ({ node: make("li", "", line), update: () => undefined }),
    );
    this.node = make("div", "dtd-lines", make("div", "dtd-label", label), this.#lines.node);
  }

  update(lines: readonly string[]): void {
    setHidden(this.node, lines.length === 0);
    this.#lines.update(lines);
  }
}

/** A part that folds; the reader's fold stays. */
export function folding(label: string, open: boolean, ...content: HTMLElement[]): HTMLDetailsElement {
  const node = make("details", "dtd-part", make("summary", "", make("span", "dtd-label", label)), ...content);
  node.open = open;
  return node;
}

/** A mark and a text beside it. */
export class Marked {
  readonly #sign = mark("");
  readonly #text = make("span", "");
  #state: State = "";

  constructor(readonly node: HTMLElement) {
    node.prepend(this.#sign, this.#text);
  }

  update(state: State, text: string): void {
    if (state !== this.#state) {
      this.#state = state;
      setMark(this.#sign, state);
    }
    setText(this.#text, text);
  }
}
