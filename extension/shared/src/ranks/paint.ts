/** Draws one cell of the grid, by the room that there is. */

import { trans } from "../trans.js";
import type { Layout } from "./layout.js";
import { OUTLINES } from "./marks.js";
import type { ShownRow, State } from "./read.js";
import type { Theme } from "./theme.js";
import { bytes, elapsed, operation, placeName, rankName, stateWord } from "./words.js";

/** Cells of fewer pixels are too small for a mark. */
const LEAST_MARK = 9;

export type Canvas = CanvasRenderingContext2D;

/** What a cell tells: if it is the same as before, the cell is not drawn again. */
export function content(size: Layout["size"], row: ShownRow, taken: number): readonly string[] {
  switch (size) {
    case "dots":
      return [row.state];
    case "short":
      return [row.state, String(row.rank ?? row.pid ?? "")];
    default: {
      const since = elapsed(row.since, taken);
      return [
        row.state,
        rankName(row),
        row.step === null ? "" : trans.__("step %1", row.step),
        operation(row) || placeName(row.at.replace(/^cell /, "")),
        since || stateWord(row.state),
        row.memory ? bytes(row.memory[0]) : "",
      ];
    }
  }
}

/** Draws it in place of what was there. */
export function paint(
  canvas: Canvas,
  theme: Theme,
  at: Layout,
  state: State,
  told: readonly string[],
  x: number,
  y: number,
): void {
  const width = at.width - at.gap;
  canvas.clearRect(x, y, at.width, at.height);
  if (at.size === "dots" && width < LEAST_MARK) {
    dot(canvas, theme, state, x, y, width);
    return;
  }
  canvas.save();
  canvas.translate(x, y);
  if (at.size === "dots") {
    sign(canvas, theme, state, width);
  } else {
    card(canvas, theme, at.size, state, told, width, at.height - at.gap);
  }
  canvas.restore();
}

function card(
  canvas: Canvas,
  theme: Theme,
  size: "full" | "short",
  state: State,
  told: readonly string[],
  width: number,
  height: number,
): void {
  const colour = theme.states[state];
  box(canvas, colour, state, width, height);
  if (size === "short") {
    outline(canvas, colour, state, 4, (height - 8) / 2, 8);
    font(canvas, theme, state === "culprit");
    canvas.fillStyle = theme.text;
    canvas.textAlign = "right";
    canvas.fillText(told[1] ?? "", width - 4, height / 2, width - 18);
    return;
  }
  const [, name = "", step = "", doing = "", last = "", memory = ""] = told;
  const [upper, middle, lower] = [0.25 * height, 0.52 * height, 0.79 * height];
  const room = width - 13;
  outline(canvas, colour, state, 7, upper - 5, 10);
  const taken = 20 + write(canvas, theme, name, { x: 21, y: upper, room: room - 14, bold: true });
  write(canvas, theme, step, { x: width - 6, y: upper, room: room - taken, right: true, soft: true });
  write(canvas, theme, doing, { x: 7, y: middle, room, bold: state === "culprit" });
  const below = 6 + write(canvas, theme, memory, { x: width - 6, y: lower, room, right: true, soft: true });
  write(canvas, theme, last, { x: 7, y: lower, room: room - below, soft: true });
}

/** Where one cell is a few pixels, a culprit is a diamond larger than its cell. */
export function beacon(canvas: Canvas, theme: Theme, at: Layout, x: number, y: number): void {
  const size = beaconSize(at);
  canvas.save();
  const inside = (corner: number, edge: number): number => Math.max(1, Math.min(edge - size - 1, corner - size / 2));
  const middle = (at.width - at.gap) / 2;
  canvas.translate(inside(x + middle, at.width * at.columns), inside(y + middle, at.height * at.rows));
  canvas.scale(size / 12, size / 12);
  const path = new Path2D(OUTLINES.culprit);
  canvas.lineJoin = "round";
  canvas.strokeStyle = theme.ground;
  canvas.lineWidth = 4;
  canvas.stroke(path);
  canvas.fillStyle = theme.states.culprit;
  canvas.fill(path);
  canvas.restore();
}

function beaconSize(at: Layout): number {
  return Math.max(13, Math.min(1.5 * at.width, at.width + 4));
}

/** The name of a culprit beside its diamond, on whichever side there is room. */
export function flag(canvas: Canvas, theme: Theme, at: Layout, name: string, x: number, y: number): void {
  font(canvas, theme, true);
  const width = canvas.measureText(name).width + 10;
  const away = beaconSize(at) / 2 + 5;
  const widest = at.width * at.columns - 1;
  const left = Math.round(x + away + width <= widest ? x + away : Math.max(0, x - away - width));
  const top = Math.round(Math.max(0, Math.min(y - 8, at.height * at.rows - 17)));
  canvas.fillStyle = theme.ground;
  canvas.strokeStyle = theme.states.culprit;
  canvas.lineWidth = 1;
  canvas.beginPath();
  canvas.roundRect(left + 0.5, top + 0.5, width, 16, 3);
  canvas.fill();
  canvas.stroke();
  canvas.fillStyle = theme.text;
  canvas.textAlign = "left";
  canvas.fillText(name, left + 5.5, top + 9);
}

function box(canvas: Canvas, colour: string, state: State, width: number, height: number): void {
  const edge = state === "culprit" ? 2 : 1;
  canvas.beginPath();
  canvas.roundRect(edge / 2, edge / 2, width - edge, height - edge, 4);
  canvas.globalAlpha = state === "culprit" ? 0.2 : 0.1;
  canvas.fillStyle = colour;
  canvas.fill();
  canvas.globalAlpha = state === "culprit" ? 1 : 0.55;
  canvas.strokeStyle = colour;
  canvas.lineWidth = edge;
  canvas.setLineDash(state === "silent" || state === "gone" ? [3, 3] : []);
  canvas.stroke();
  canvas.globalAlpha = 1;
}

/** A mark alone. */
function sign(canvas: Canvas, theme: Theme, state: State, width: number): void {
  const colour = theme.states[state];
  const room = Math.floor(width * 0.7);
  canvas.globalAlpha = 0.12;
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, width, width);
  canvas.globalAlpha = state === "waits" ? 0.6 : 1; // most of them: a calm ground
  outline(canvas, colour, state, (width - room) / 2, (width - room) / 2, room);
}

/** Too small for a mark: told apart by how much of the cell is filled. Thousands are drawn: no paths, nothing saved. */
function dot(canvas: Canvas, theme: Theme, state: State, x: number, y: number, width: number): void {
  const inner = Math.max(1, Math.floor(width / 3));
  const middle = Math.floor((width - inner) / 2);
  canvas.fillStyle = theme.states[state];
  switch (state) {
    case "waits":
      canvas.globalAlpha = 0.4;
      canvas.fillRect(x, y, width, width);
      canvas.globalAlpha = 1;
      break;
    case "culprit":
    case "runs":
      canvas.fillRect(x, y, width, width);
      break;
    case "silent":
      canvas.fillRect(x, y, width, width);
      canvas.clearRect(x + inner, y + inner, width - 2 * inner, width - 2 * inner);
      break;
    case "gone":
      for (let i = 0; i < width; i += 1) {
        canvas.fillRect(x + i, y + i, 1, 1);
        canvas.fillRect(x + width - 1 - i, y + i, 1, 1);
      }
      break;
    default:
      canvas.fillRect(x + middle, y + middle, inner, inner);
  }
}

function outline(canvas: Canvas, colour: string, state: State, x: number, y: number, size: number): void {
  canvas.save();
  canvas.translate(x, y);
  canvas.scale(size / 12, size / 12);
  canvas.fillStyle = colour;
  canvas.fill(new Path2D(OUTLINES[state]), "evenodd");
  canvas.restore();
}

interface Place {
  readonly x: number;
  readonly y: number;
  readonly room: number;
  /** It ends at x. */
  readonly right?: boolean;
  readonly bold?: boolean;
  readonly soft?: boolean;
}

/** Writes as much as there is room for; returns how wide that is. */
function write(canvas: Canvas, theme: Theme, text: string, at: Place): number {
  font(canvas, theme, at.bold ?? false);
  canvas.textAlign = at.right ? "right" : "left";
  canvas.fillStyle = at.soft ? theme.soft : theme.text;
  const fitting = shortened(canvas, text, at.room);
  canvas.fillText(fitting, at.x, at.y);
  return canvas.measureText(fitting).width;
}

function font(canvas: Canvas, theme: Theme, bold: boolean): void {
  canvas.font = `${bold ? "600 " : ""}11px ${theme.font}`;
  canvas.textBaseline = "middle";
}

/** Cut before its sequence number, which tells one call from the next. */
function shortened(canvas: Canvas, text: string, room: number): string {
  if (canvas.measureText(text).width <= room) {
    return text;
  }
  const number = /#\d+$/.exec(text)?.[0] ?? "";
  for (let keep = text.length - number.length - 1; keep > 1; keep -= 1) {
    const short = `${text.slice(0, keep)}…${number}`;
    if (canvas.measureText(short).width <= room) {
      return short;
    }
  }
  return "";
}
