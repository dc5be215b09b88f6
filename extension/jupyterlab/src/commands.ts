/** What the command palette, the launcher and the keyboard offer. */

import type { JupyterFrontEnd } from "@jupyterlab/application";
import { type ICommandPalette, Notification } from "@jupyterlab/apputils";
import type { CodeCell } from "@jupyterlab/cells";
import type { ILauncher } from "@jupyterlab/launcher";
import type { INotebookTracker, Notebook } from "@jupyterlab/notebook";
import type { Widget } from "@lumino/widgets";

import { focusCard } from "../../shared/src/card.js";
import { LOAD } from "./ask.js";
import { FailedOutput } from "./failed.js";
import { icon } from "./icon.js";
import type { Means } from "./means.js";
import { insertBelow, isDiagnosed, lastFailed } from "./place.js";

export const WHY = "dtdebug:why";
export const LEARN = "dtdebug:learn";

/** What the commands set in motion. */
export interface Does {
  openPanel(): void;
  /** Opens the panel and guides from this cell on. */
  guide(cell: CodeCell | null): void;
  clearHistory(): Promise<void>;
  /** Opens the wizard that needs no notebook. */
  why(): void;
  /** Opens the list of lessons and labs. */
  learn(): void;
}

export function addCommands(
  app: JupyterFrontEnd,
  tracker: INotebookTracker | null,
  palette: ICommandPalette | null,
  launcher: ILauncher | null,
  { trans }: Means,
  does: Does,
): void {
  const hasNotebook = () => Boolean(tracker?.currentWidget);
  const add = (command: string, label: string, caption: string, execute: () => unknown, isEnabled = () => true) => {
    app.commands.addCommand(command, {
      label,
      caption,
      describedBy: { args: { type: "object", properties: {} } },
      isEnabled,
      execute,
      ...(command === WHY || command === LEARN ? { icon } : {}),
    });
    palette?.addItem({ command, category: "dtdebug" });
  };
  add(
    "dtdebug:open-panel",
    trans.__("dtdebug: Open panel"),
    trans.__("Shows what the ranks do, the wizard and the history of this notebook"),
    () => does.openPanel(),
  );
  add(
    "dtdebug:diagnose",
    trans.__("dtdebug: Diagnose the last failed cell"),
    trans.__("Shows under the cell that failed last what went wrong and what to change"),
    async () => {
      const notebook = tracker?.currentWidget?.content;
      const cell = notebook && lastFailed(notebook);
      if (notebook && cell) {
        await diagnose(notebook, cell);
      } else {
        Notification.info(trans.__("dtdebug: no cell of this notebook shows an error."), { autoClose: 5_000 });
      }
    },
    hasNotebook,
  );
  add(
    "dtdebug:wizard",
    trans.__("dtdebug: Guide me to the cause"),
    trans.__("Asks a few questions beside the notebook about the cell that failed last, or about what you see"),
    () => {
      const notebook = tracker?.currentWidget?.content;
      does.guide(notebook ? lastFailed(notebook) : null);
    },
  );
  add(
    "dtdebug:insert-load-ext",
    trans.__("dtdebug: Insert %1", LOAD),
    trans.__("Puts a cell below that loads dtdebug's extension; run it before what may fail"),
    () => {
      const panel = tracker?.currentWidget;
      const cell = panel?.content.activeCell;
      if (panel && cell) {
        insertBelow({ panel, cell }, LOAD);
      }
    },
    hasNotebook,
  );
  add(
    "dtdebug:clear-history",
    trans.__("dtdebug: Clear the history of this notebook"),
    trans.__("Forgets the diagnoses of the active notebook"),
    () => does.clearHistory(),
    hasNotebook,
  );
  add(
    WHY,
    trans.__("Why did my distributed run fail?"),
    trans.__("Say what you see, or paste a log: no notebook and no kernel is needed"),
    () => does.why(),
  );
  launcher?.add({ command: WHY, category: trans.__("Other"), rank: 5 });
  add(
    LEARN,
    trans.__("Learn to debug distributed training"),
    trans.__("Lessons and labs: real failures of several processes on this machine, to practise on"),
    () => does.learn(),
  );
  launcher?.add({ command: LEARN, category: trans.__("Other"), rank: 6 });
}

/** Goes to the cell; presses its button, unless a diagnosis stands there. */
async function diagnose(notebook: Notebook, cell: CodeCell): Promise<void> {
  notebook.activeCellIndex = notebook.widgets.indexOf(cell);
  await notebook.scrollToCell(cell);
  await cell.ready;
  if (isDiagnosed(cell.model)) {
    focusCard(cell.outputArea.node.querySelector(".dtd") ?? cell.outputArea.node);
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
