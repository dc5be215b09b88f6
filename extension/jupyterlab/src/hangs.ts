/** All that notices what its reader does not see, put together: ranks that hang, a card out of sight. */

import type { JupyterFrontEnd } from "@jupyterlab/application";
import type { ICommandPalette } from "@jupyterlab/apputils";
import type { INotebookTracker } from "@jupyterlab/notebook";
import type { IStatusBar } from "@jupyterlab/statusbar";

import type { Means } from "./means.js";
import { Now } from "./now.js";
import { addOutOfSight } from "./outofsight.js";
import { addStatusItem } from "./statusitem.js";
import { type Standing, Watches } from "./watches.js";

const BESIDE = "dtdebug:wizard-beside";

/** Watches all notebooks; gives what the panel shows of it. `openPanel` brings the panel into sight. */
export function addHangs(
  app: JupyterFrontEnd,
  tracker: INotebookTracker | null,
  palette: ICommandPalette | null,
  bar: IStatusBar | null,
  means: Means,
  openPanel: () => void,
): Now {
  const { trans } = means;
  const watches = tracker && new Watches(tracker, means);
  const now = new Now(watches, app.serviceManager, means);
  if (!tracker || !watches) {
    return now;
  }
  const show = ({ panel }: Standing) => {
    app.shell.activateById(panel.id);
    openPanel();
    now.turnTo(panel);
  };
  addStatusItem(bar, watches, show, trans);
  addOutOfSight(bar, tracker, means, ({ id }) => app.shell.activateById(id));
  openWhenOneHangs(watches, means, openPanel);
  app.commands.addCommand(BESIDE, {
    label: trans.__("dtdebug: Wizard while a cell runs"),
    caption: trans.__("Opens the wizard in a subshell of the kernel, where it answers while the cell goes on"),
    describedBy: { args: { type: "object", properties: {} } },
    isEnabled: () => tracker.currentWidget !== null,
    execute: () => {
      openPanel();
      now.askBeside(tracker.currentWidget);
    },
  });
  palette?.addItem({ command: BESIDE, category: "dtdebug" });
  return now;
}

/** If its user wants so: once for each hang, and only for the notebook that is in front. */
function openWhenOneHangs(watches: Watches, means: Means, openPanel: () => void): void {
  let stood: unknown = null;
  watches.changed.connect(() => {
    const found = watches.standing;
    if (found && found.watch !== stood && means.opens === "hang" && found.panel.isVisible) {
      openPanel();
    }
    stood = found?.watch ?? null;
  });
}
