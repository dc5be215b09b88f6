/** One mark a state, of the same outline in the document and on the canvas: nothing is told by colour alone. */

import type { State } from "./read.js";

/** Outlines in a square of 12 by 12: diamond, two bars, triangle, ring, cross; a dot where the state is not known. */
export const OUTLINES: Record<State, string> = {
  culprit: "M6 0 12 6 6 12 0 6Z",
  waits: "M2 1.5H5V10.5H2ZM7 1.5H10V10.5H7Z",
  runs: "M2.5 1 10.5 6 2.5 11Z",
  silent: "M6 .5A5.5 5.5 0 1 0 6 11.5 5.5 5.5 0 1 0 6 .5ZM6 2.7A3.3 3.3 0 1 1 6 9.3 3.3 3.3 0 1 1 6 2.7Z",
  gone: "M1 2.8 2.8 1 6 4.2 9.2 1 11 2.8 7.8 6 11 9.2 9.2 11 6 7.8 2.8 11 1 9.2 4.2 6Z",
  "": "M6 4A2 2 0 1 0 6 8 2 2 0 1 0 6 4Z",
};

const SVG = "http://www.w3.org/2000/svg";

/** The mark as an element; what it means must stand beside it as text. */
export function mark(state: State): SVGElement {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 12 12");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  svg.append(path);
  setMark(svg, state);
  return svg;
}

export function setMark(svg: SVGElement, state: State): void {
  svg.setAttribute("class", `dtd-mark dtd-state-${state || "unknown"}`);
  svg.firstElementChild?.setAttribute("d", OUTLINES[state]);
}
