/**
 * One cell a rank, on a canvas: as elements, 4096 cells cost a hundred times as much to change. Drawn by hand, for a
 * library would bring a hundred times the code of this one picture.
 *
 * For screen readers it is a list with one entry: the cell at the cursor, which is an element over the canvas.
 */

import { make } from "../dom.js";
import { trans } from "../trans.js";
import { setAttribute, setHidden, setText } from "./keyed.js";
import { cellAt, type Layout, layout } from "./layout.js";
import { beacon, type Canvas, content, flag, paint } from "./paint.js";
import type { ShownRow } from "./read.js";
import { type Theme, theme, watchTheme } from "./theme.js";
import { describe, rankName } from "./words.js";

const FLAGS = 3;
const MOST_BEACONS = 256;
let made = 0;

export class Grid {
  readonly node: HTMLElement;
  readonly #cells = make("canvas", "dtd-cells");
  /** Culprits of a dense grid and the ranks that are pointed out, above the cells. */
  readonly #marks = make("canvas", "dtd-marks");
  readonly #cursor = make("div", "dtd-cursor");
  readonly #field: HTMLElement;
  readonly #detail = make("p", "dtd-detail");
  readonly #ended: (() => void)[];
  #rows: readonly ShownRow[] = [];
  #taken = 0;
  #theme: Theme | null = null;
  /** Something about the page has changed that may be the theme. */
  #isStale = true;
  #at: Layout = layout(0, 0);
  #drawn: string[] = [];
  #pointedOut: readonly number[] = [];
  #chosen: number | null = null;
  #under: number | null = null;

  constructor() {
    made += 1;
    this.#cursor.id = `dtd-cursor-${made}`;
    this.#cursor.hidden = true;
    this.#cursor.setAttribute("role", "option");
    this.#cells.setAttribute("aria-hidden", "true");
    this.#marks.setAttribute("aria-hidden", "true");
    this.#field = make("div", "dtd-field", this.#cells, this.#marks, this.#cursor);
    this.#field.tabIndex = 0;
    this.#field.setAttribute("role", "listbox");
    this.node = make("div", "dtd-grid", this.#field, this.#detail);
    this.#listen();
    const size = new ResizeObserver(() => this.#draw());
    size.observe(this.#field);
    const endTheme = watchTheme(() => {
      this.#isStale = true;
      this.#draw();
    });
    this.#ended = [() => size.disconnect(), endTheme];
  }

  /** Shows these ranks; `label` says in words what is seen. */
  update(rows: readonly ShownRow[], taken: number, label: string): void {
    this.#rows = rows;
    this.#taken = taken;
    const kept = (index: number | null): number | null => (index !== null && index < rows.length ? index : null);
    this.#chosen = kept(this.#chosen);
    this.#under = kept(this.#under);
    setAttribute(this.#field, "aria-label", label);
    setHidden(this.node, rows.length === 0);
    this.#draw();
    this.#tell("off");
  }

  /** Shows where these rows are; none: shows all alike. */
  pointOut(members: readonly number[]): void {
    this.#pointedOut = members;
    this.#cells.classList.toggle("dtd-dim", members.length > 0);
    this.#drawMarks();
  }

  /** Puts the cursor on a row. */
  choose(index: number | null): void {
    this.#chosen = index;
    this.#under = null;
    this.#tell("polite");
  }

  dispose(): void {
    for (const end of this.#ended.splice(0)) {
      end();
    }
  }

  #listen(): void {
    const point = (index: number | null): void => {
      this.#under = index;
      this.#tell("off");
    };
    this.#field.addEventListener("pointermove", (event) => point(this.#cellUnder(event)));
    this.#field.addEventListener("pointerleave", () => point(null));
    this.#field.addEventListener("click", (event) => this.choose(this.#cellUnder(event) ?? this.#chosen));
    this.#field.addEventListener("focus", () => this.choose(this.#chosen ?? this.#firstCulprit()));
    this.#field.addEventListener("keydown", (event) => {
      const to = event.ctrlKey || event.metaKey || event.altKey ? null : this.#moved(event.key);
      if (to !== null && this.#rows.length > 0) {
        event.preventDefault();
        event.stopPropagation();
        this.choose(Math.max(0, Math.min(this.#rows.length - 1, to)));
      }
    });
  }

  #moved(key: string): number | null {
    const from = this.#chosen ?? 0;
    const up = from - this.#at.columns;
    const down = from + this.#at.columns;
    switch (key) {
      case "ArrowLeft":
        return from - 1;
      case "ArrowRight":
        return from + 1;
      case "ArrowUp":
        return up < 0 ? from : up;
      case "ArrowDown":
        return down < this.#rows.length ? down : from;
      case "Home":
        return 0;
      case "End":
        return this.#rows.length - 1;
      default:
        return null;
    }
  }

  #firstCulprit(): number | null {
    const found = this.#rows.findIndex((row) => row.state === "culprit");
    return found >= 0 ? found : this.#rows.length > 0 ? 0 : null;
  }

  #cellUnder(event: MouseEvent): number | null {
    const box = this.#cells.getBoundingClientRect();
    return cellAt(this.#at, this.#rows.length, event.clientX - box.left, event.clientY - box.top);
  }

  /** Moves the cursor to the rank at hand and says what is known of it; aloud only where the reader moved. */
  #tell(aloud: "polite" | "off"): void {
    const index = this.#under ?? this.#chosen;
    const row = index === null ? undefined : this.#rows[index];
    setAttribute(this.#detail, "aria-live", aloud);
    setHidden(this.#cursor, row === undefined);
    if (index === null || row === undefined) {
      this.#field.removeAttribute("aria-activedescendant");
      setText(this.#detail, trans.__("Point at a rank, or use the arrow keys, to see what it does."));
      return;
    }
    const [x, y] = this.#corner(index);
    const { style } = this.#cursor;
    style.transform = `translate(${x}px, ${y}px)`;
    style.width = `${this.#at.width - this.#at.gap}px`;
    style.height = `${this.#at.height - this.#at.gap}px`;
    const told = describe(row, this.#taken);
    setAttribute(this.#field, "aria-activedescendant", this.#cursor.id);
    setAttribute(this.#cursor, "aria-label", told);
    setAttribute(this.#cursor, "aria-selected", String(index === this.#chosen));
    setAttribute(this.#cursor, "aria-posinset", String(index + 1));
    setAttribute(this.#cursor, "aria-setsize", String(this.#rows.length));
    setText(this.#detail, told);
  }

  #corner(index: number): readonly [number, number] {
    return [(index % this.#at.columns) * this.#at.width, Math.floor(index / this.#at.columns) * this.#at.height];
  }

  /** Draws the cells that tell something new; nothing while the grid is not on the screen. */
  #draw(): void {
    const width = this.#field.clientWidth;
    if (width === 0) {
      return;
    }
    const canvas = this.#cells.getContext("2d");
    if (canvas === null) {
      return;
    }
    const at = layout(this.#rows.length, width);
    const colours = this.#isStale || this.#theme === null ? theme(this.#field) : this.#theme;
    this.#isStale = false;
    if (JSON.stringify([colours, at]) !== JSON.stringify([this.#theme, this.#at])) {
      this.#theme = colours;
      this.#at = at;
      this.#drawn = [];
      for (const each of [this.#cells, this.#marks]) {
        fit(each, at, colours.ratio);
      }
      this.#tell("off");
    }
    if (this.#drawCells(canvas, colours)) {
      this.#drawMarks();
    }
  }

  #drawCells(canvas: Canvas, theme: Theme): boolean {
    let changed = this.#drawn.length > this.#rows.length;
    for (let i = this.#rows.length; i < this.#drawn.length; i += 1) {
      canvas.clearRect(...this.#corner(i), this.#at.width, this.#at.height);
    }
    this.#drawn.length = Math.min(this.#drawn.length, this.#rows.length);
    this.#rows.forEach((row, i) => {
      const told = content(this.#at.size, row, this.#taken);
      const key = told.join("\n");
      if (this.#drawn[i] !== key) {
        changed = true;
        this.#drawn[i] = key;
        paint(canvas, theme, this.#at, row.state, told, ...this.#corner(i));
      }
    });
    return changed;
  }

  #drawMarks(): void {
    const canvas = this.#marks.getContext("2d");
    if (canvas === null || this.#theme === null) {
      return;
    }
    canvas.clearRect(0, 0, this.#at.width * this.#at.columns, this.#at.height * this.#at.rows);
    for (const i of this.#pointedOut) {
      const row = this.#rows[i];
      if (row) {
        const told = content(this.#at.size, row, this.#taken);
        paint(canvas, this.#theme, this.#at, row.state, told, ...this.#corner(i));
      }
    }
    if (this.#at.size === "dots") {
      this.#drawBeacons(canvas, this.#theme);
    }
  }

  #drawBeacons(canvas: Canvas, theme: Theme): void {
    const culprits: number[] = [];
    this.#rows.forEach((row, i) => row.state === "culprit" && culprits.push(i));
    if (culprits.length > MOST_BEACONS) {
      return; // they are the picture; each larger than its cell would hide all others
    }
    for (const i of culprits) {
      beacon(canvas, theme, this.#at, ...this.#corner(i));
    }
    for (const i of culprits.length <= FLAGS ? culprits : []) {
      const row = this.#rows[i];
      const [x, y] = this.#corner(i);
      const half = this.#at.width / 2;
      if (row) {
        flag(canvas, theme, this.#at, rankName(row), x + half, y + half);
      }
    }
  }
}

function fit(canvas: HTMLCanvasElement, at: Layout, ratio: number): void {
  const width = at.width * at.columns;
  const height = at.height * at.rows;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  canvas.getContext("2d")?.scale(ratio, ratio);
}
