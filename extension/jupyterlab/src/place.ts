/** Where an output stands: its notebook and cell, what the cell says, and new cells below it. */

import { type Cell, CodeCell, type ICodeCellModel } from "@jupyterlab/cells";
import { type Notebook, NotebookActions, NotebookPanel } from "@jupyterlab/notebook";
import type { TranslationBundle } from "@jupyterlab/translation";
import type { Widget } from "@lumino/widgets";

import type { Fit } from "../../shared/src/actions.js";
import { parts, patched } from "../../shared/src/diff.js";
import type { Question } from "./ask.js";
import { plain } from "./matcher.js";

export const DIAGNOSIS = "application/vnd.dtdebug.diagnosis+json";

/** Characters of output that the kernel is sent: the end, where cells fail. */
const MOST = 64_000;

export interface Place {
  readonly panel: NotebookPanel;
  readonly cell: CodeCell;
}

/** The cell that an output belongs to; null in consoles and in copies of outputs. */
export function placeOf(output: Widget): Place | null {
  let cell: CodeCell | null = null;
  for (let each = output.parent; each; each = each.parent) {
    if (each instanceof CodeCell) {
      cell = each;
    } else if (each instanceof NotebookPanel) {
      return cell && { panel: each, cell };
    }
  }
  return null;
}

/** What a cell shows of its failure; a cell of `%dtdebug` shows what the kernel knows already. */
export function failureOf(model: ICodeCellModel): Omit<Question, "answers"> {
  const source = model.sharedModel.getSource();
  let [output, ename, evalue] = ["", "", ""];
  for (let i = 0; i < model.outputs.length; i++) {
    const each = model.outputs.get(i).toJSON();
    if (each.output_type === "stream") {
      output += text(each.text);
    } else if (each.output_type === "error") {
      ename = text(each.ename);
      evalue = text(each.evalue);
      output += `\n${text(each.traceback, "\n")}\n`;
    }
  }
  const isOurs = !ename && /^\s*%dtdebug\b/m.test(source);
  return isOurs
    ? { cell: "", output: "", ename: "", evalue: "" }
    : { cell: source, output: plain(output).slice(-MOST), ename, evalue: plain(evalue).slice(0, MOST) };
}

/** Text of a notebook, which may be in lines. */
function text(value: unknown, between = ""): string {
  return Array.isArray(value) ? value.join(between) : typeof value === "string" ? value : "";
}

/** The cell has an error among its outputs. */
export function hasFailed(model: ICodeCellModel): boolean {
  return outputs(model).some((each) => each.type === "error");
}

/** A diagnosis stands among the outputs of the cell. */
export function isDiagnosed(model: ICodeCellModel): boolean {
  return diagnosisIn(model) !== undefined;
}

/** The diagnosis among the outputs of the cell. */
export function diagnosisIn(model: ICodeCellModel): unknown {
  return dataIn(model, DIAGNOSIS);
}

/** The last output of the cell that has data of this type. */
export function dataIn(model: ICodeCellModel, mime: string): unknown {
  return outputs(model)
    .filter((each) => mime in each.data)
    .at(-1)?.data[mime];
}

/** How its reader knows the cell. */
export function numberOf(cell: CodeCell): string {
  return `[${cell.model.executionCount ?? " "}]`;
}

/** The failed cell that ran last; without numbers of runs, the lowest. */
export function lastFailed(notebook: Notebook): CodeCell | null {
  let last: CodeCell | null = null;
  for (const cell of notebook.widgets) {
    if (cell instanceof CodeCell && (hasFailed(cell.model) || isDiagnosed(cell.model))) {
      if ((cell.model.executionCount ?? 0) >= (last?.model.executionCount ?? 0)) {
        last = cell;
      }
    }
  }
  return last;
}

/** The cell with this id. */
export function cellById(notebook: Notebook, id: string): Cell | null {
  return notebook.widgets.find((cell) => cell.model.id === id) ?? null;
}

function outputs(model: ICodeCellModel) {
  return Array.from({ length: model.outputs.length }, (_, i) => model.outputs.get(i));
}

/** The cells that a diff of the user's code fits, the failed one first; the change can be undone in each. */
export function fitOf({ panel, cell }: Place, diff: string, trans: TranslationBundle): Fit | null {
  if (panel.context.model.readOnly || cell.isDisposed) {
    return null;
  }
  const left = new Set([cell, ...panel.content.widgets.filter((other) => other instanceof CodeCell)]);
  const changes: { readonly each: Cell; readonly text: string }[] = [];
  for (const part of parts(diff)) {
    const each = [...left].find(({ model }) => patched(part, model.sharedModel.getSource()) !== null);
    const text = each && patched(part, each.model.sharedModel.getSource());
    if (!each || text === null || text === undefined) {
      return null;
    }
    left.delete(each);
    changes.push({ each, text });
  }
  const apply = () => {
    for (const { each, text } of changes) {
      each.model.sharedModel.updateSource(0, each.model.sharedModel.getSource().length, text);
    }
    panel.content.activeCellIndex = panel.content.widgets.indexOf(changes[0]?.each ?? cell);
  };
  return { where: named(changes.map(({ each }) => each), cell, trans), apply };
}

function named(changed: readonly Cell[], failed: Cell, trans: TranslationBundle): string {
  const numbers = changed.filter((each) => each instanceof CodeCell).map(numberOf);
  return changed.length > 1
    ? trans.__("cells %1", numbers.join(", "))
    : changed[0] === failed
      ? trans.__("this cell")
      : trans.__("cell %1", numbers.join());
}

/** Selects the cell and brings it into sight. */
export async function goTo({ content }: NotebookPanel, cell: Cell): Promise<void> {
  content.activeCellIndex = content.widgets.indexOf(cell);
  await content.scrollToCell(cell);
}

/** Puts a cell with this source below and selects it; does not run it. */
export function insertBelow({ panel, cell }: { panel: NotebookPanel; cell: Cell }, source: string): void {
  const notebook = panel.content;
  if (panel.context.model.readOnly || cell.isDisposed) {
    throw new Error("the notebook can't be changed");
  }
  notebook.activeCellIndex = notebook.widgets.indexOf(cell);
  notebook.deselectAll();
  NotebookActions.insertBelow(notebook);
  notebook.activeCell?.model.sharedModel.setSource(source);
}

/** The same, and runs it; does not wait for its end. */
export function runBelow(place: Place, source: string): void {
  insertBelow(place, source);
  void NotebookActions.run(place.panel.content, place.panel.sessionContext);
}

/** Goes to a place such as `cell In[3], line 6, in train`, where it is in the notebook; a cell that runs has no number. */
export async function openPlace(
  panel: NotebookPanel,
  at: string,
  running: { readonly number: number | null | undefined; readonly cell: Cell | null },
): Promise<void> {
  const [, number, line] = /^cell In\[(\d{1,9})\](?:, line (\d{1,9}))?/.exec(at) ?? [];
  const cell =
    panel.content.widgets.find((each) => each instanceof CodeCell && String(each.model.executionCount) === number) ??
    (String(running.number) === number ? running.cell : null);
  if (cell && !cell.isDisposed) {
    await goTo(panel, cell);
    cell.editor?.setCursorPosition({ line: Number(line ?? 1) - 1, column: 0 });
  }
}

/** The time of today; before that, the day too. */
export function shortTime(at: Date): string {
  const isToday = at.toDateString() === new Date().toDateString();
  return at.toLocaleString(undefined, isToday ? { timeStyle: "short" } : { dateStyle: "short", timeStyle: "short" });
}
