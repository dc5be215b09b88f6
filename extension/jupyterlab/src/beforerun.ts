/** A line in the panel: what `%dtdebug doctor` has said in this notebook, and the way to its card. */

import { CodeCell } from "@jupyterlab/cells";
import type { NotebookPanel } from "@jupyterlab/notebook";
import type { TranslationBundle } from "@jupyterlab/translation";

import { button, make } from "../../shared/src/dom.js";
import { type Examined, latest, readExamined } from "./examined.js";
import { dataIn, goTo, shortTime } from "./place.js";

const DOCTOR = "application/vnd.dtdebug.doctor+json";

export class BeforeRun {
  readonly node = make("div", "dtdp-doctor");

  constructor(private readonly trans: TranslationBundle) {
    this.node.setAttribute("role", "group");
    this.node.setAttribute("aria-label", trans.__("Before the run"));
  }

  /** Shows what stands in this notebook now. */
  draw(panel: NotebookPanel | null): void {
    const found = panel && latest(panel.content.widgets.flatMap(answer));
    this.node.replaceChildren(...(panel && found ? this.#rows(panel, found) : []));
  }

  #rows(panel: NotebookPanel, { cell, examined }: { cell: CodeCell; examined: Examined }): HTMLElement[] {
    const { trans } = this;
    const when = make("time", "dtd-soft", shortTime(new Date(examined.at)));
    when.dateTime = examined.at;
    const show = button(trans.__("Show"), () => void goTo(panel, cell), trans.__("Show what doctor has found"));
    const line = make("span", "", make("i", ""), when, ` ${trans.__("doctor: %1", examined.line)}`);
    line.dataset.state = examined.state;
    const findings = make("ul", "", ...examined.findings.map((text) => make("li", "", text)));
    return [make("div", "dtdp-row", line, show), ...(examined.findings.length ? [findings] : [])];
  }
}

function answer(cell: unknown): { cell: CodeCell; examined: Examined }[] {
  const examined = cell instanceof CodeCell ? readExamined(dataIn(cell.model, DOCTOR)) : null;
  return cell instanceof CodeCell && examined ? [{ cell, examined }] : [];
}
