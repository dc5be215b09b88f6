/** Tells of cells that have ended, also of those that another page of the same document has run. */

import { CodeCell, type ICellModel } from "@jupyterlab/cells";
import type { IChangedArgs } from "@jupyterlab/coreutils";
import { type INotebookTracker, NotebookActions, type NotebookPanel } from "@jupyterlab/notebook";

import type { Means } from "./means.js";
import { hasFailed } from "./place.js";

export function tellEnds(tracker: INotebookTracker | null, { ended }: Means): void {
  /** Of these the actions tell, which know more. */
  const sent = new WeakSet<ICellModel>();
  NotebookActions.executionScheduled.connect((_, { cell }) => sent.add(cell.model));
  NotebookActions.executed.connect((_, { notebook, cell, success }) => {
    sent.delete(cell.model);
    if (cell instanceof CodeCell) {
      ended.emit({ notebook, cell, success });
    }
  });

  const follow = ({ content: notebook, context }: NotebookPanel) => {
    const { cells } = context.model;
    const changed = (model: ICellModel, { name, oldValue, newValue }: IChangedArgs<unknown>) => {
      if (name === "executionState" && oldValue === "running" && newValue === "idle" && !sent.has(model)) {
        const cell = notebook.widgets.find((each) => each.model === model);
        if (cell instanceof CodeCell && cell.model.executionCount !== null) {
          ended.emit({ notebook, cell, success: !hasFailed(cell.model) });
        }
      }
    };
    const listen = () => {
      for (const model of cells) {
        model.stateChanged.connect(changed); // a second time changes nothing
      }
    };
    cells.changed.connect(listen);
    listen();
  };
  tracker?.forEach(follow);
  tracker?.widgetAdded.connect((_, panel) => follow(panel));
}
