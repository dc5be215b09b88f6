/** What the command palette offers. */

import type { JupyterFrontEnd } from "@jupyterlab/application";
import { type ICommandPalette, Notification } from "@jupyterlab/apputils";
import { CodeCell } from "@jupyterlab/cells";
import type { INotebookTracker, Notebook } from "@jupyterlab/notebook";
import type { Widget } from "@lumino/widgets";

import { LOAD } from "./ask.js";
import { FailedOutput } from "./failed.js";
import type { Means } from "./means.js";
import { hasFailed, insertBelow, isDiagnosed } from "./place.js";

const DIAGNOSE = "dtdebug:diagnose";
const INSERT = "dtdebug:insert-load-ext";

export function addCommands(
  app: JupyterFrontEnd,
  tracker: INotebookTracker,
  palette: ICommandPalette | null,
  { trans }: Means,
): void {
  const isEnabled = () => tracker.currentWidget !== null;
  app.commands.addCommand(DIAGNOSE, {
    label: trans.__("dtdebug: Diagnose the last failed cell"),
    caption: trans.__("Shows under the cell that failed last what went wrong and what to change"),
    describedBy: { args: { type: "object", properties: {} } },
    isEnabled,
    execute: async () => {
      const notebook = tracker.currentWidget?.content;
      const cell = notebook && lastFailed(notebook);
      if (notebook && cell) {
        await diagnose(notebook, cell);
      } else {
        Notification.info(trans.__("dtdebug: no cell of this notebook shows an error."), { autoClose: 5_000 });
      }
    },
  });
  app.commands.addCommand(INSERT, {
    label: trans.__("dtdebug: Insert %1", LOAD),
    caption: trans.__("Puts a cell below that loads dtdebug's extension; run it before what may fail"),
    describedBy: { args: { type: "object", properties: {} } },
    isEnabled,
    execute: () => {
      const panel = tracker.currentWidget;
      const cell = panel?.content.activeCell;
      if (panel && cell) {
        insertBelow({ panel, cell }, LOAD);
      }
    },
  });
  for (const command of [DIAGNOSE, INSERT]) {
    palette?.addItem({ command, category: "dtdebug" });
  }
}

/** The failed cell that ran last; without numbers of runs, the lowest. */
function lastFailed(notebook: Notebook): CodeCell | null {
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

/** Goes to the cell; presses its button, unless a diagnosis stands there. */
async function diagnose(notebook: Notebook, cell: CodeCell): Promise<void> {
  notebook.activeCellIndex = notebook.widgets.indexOf(cell);
  await notebook.scrollToCell(cell);
  await cell.ready;
  if (isDiagnosed(cell.model)) {
    cell.outputArea.node.querySelector<HTMLElement>(".dtd summary")?.focus();
  } else {
    await find(cell.outputArea)?.diagnose();
  }
}

function find(widget: Widget): FailedOutput | null {
  if (widget instanceof FailedOutput) {
    return widget;
  }
  for (const child of widget.children()) {
    const found = find(child);
    if (found) {
      return found;
    }
  }
  return null;
}
