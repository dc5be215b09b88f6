/** Pieces of the view that live on from one update to the next, so that folds, focus and scroll stay. */

/** An element, and how it shows what it is given next. */
export interface Piece<T> {
  readonly node: HTMLElement;
  update(item: T): void;
}

/** A list in which an item of the same key keeps its element. */
export class Keyed<T> implements Piece<readonly T[]> {
  #kept = new Map<string, Piece<T>>();

  constructor(
    readonly node: HTMLElement,
    private readonly key: (item: T) => string,
    private readonly make: (item: T) => Piece<T>,
  ) {}

  update(items: readonly T[]): void {
    const kept = new Map<string, Piece<T>>();
    for (const item of items) {
      const name = unused(this.key(item), kept);
      const piece = this.#kept.get(name) ?? this.make(item);
      kept.set(name, piece);
      piece.update(item);
    }
    for (const [name, piece] of this.#kept) {
      if (kept.get(name) !== piece) {
        piece.node.remove();
      }
    }
    // An element that stands where it belongs is not touched: one that is moved loses focus.
    let next = this.node.firstElementChild;
    for (const piece of kept.values()) {
      if (piece.node === next) {
        next = next.nextElementSibling;
      } else {
        this.node.insertBefore(piece.node, next);
      }
    }
    this.#kept = kept;
  }
}

function unused(key: string, kept: ReadonlyMap<string, unknown>): string {
  let name = key;
  for (let i = 1; kept.has(name); i += 1) {
    name = `${key} ${i}`;
  }
  return name;
}

/** Writes only what differs: the browser lays out again what is written. */
export function setText(node: Node, text: string): void {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}

export function setAttribute(element: Element, name: string, value: string): void {
  if (element.getAttribute(name) !== value) {
    element.setAttribute(name, value);
  }
}

export function setHidden(element: HTMLElement, hidden: boolean): void {
  if (element.hidden !== hidden) {
    element.hidden = hidden;
  }
}
