/** Puts the panel where it belongs, opens it when it is asked for, and tells it what goes on. */

import type { ILabShell, ILayoutRestorer, JupyterFrontEnd } from "@jupyterlab/application";
import { type ICommandPalette, type MainAreaWidget, WidgetTracker } from "@jupyterlab/apputils";
import type { CodeCell } from "@jupyterlab/cells";
import type { ILauncher } from "@jupyterlab/launcher";
import type { INotebookTracker, NotebookPanel } from "@jupyterlab/notebook";
import type { IStateDB } from "@jupyterlab/statedb";
import type { IStatusBar } from "@jupyterlab/statusbar";

import { LEARN, WHY, addCommands } from "./commands.js";
import { tellEnds } from "./ends.js";
import { readEntries } from "./entries.js";
import { addHangs } from "./hangs.js";
import { History } from "./history.js";
import { HistoryView } from "./historyview.js";
import { Kept } from "./kept.js";
import { whyWidget } from "./launcher.js";
import { lessonsWidget } from "./lessons.js";
import type { Means } from "./means.js";
import { DebugPanel, PANEL } from "./panel.js";
import { type Place, isDiagnosed } from "./place.js";
import { readCourse } from "./steps.js";
import { Wizard } from "./wizard.js";

/** Milliseconds after which what was opened is drawn. */
const DRAWN = 150;

export interface Surroundings {
  readonly app: JupyterFrontEnd;
  readonly tracker: INotebookTracker | null;
  readonly means: Means;
  readonly state: IStateDB;
  readonly palette: ICommandPalette | null;
  readonly launcher: ILauncher | null;
  /** Null in Notebook 7. */
  readonly lab: ILabShell | null;
  readonly restorer: ILayoutRestorer | null;
  readonly bar: IStatusBar | null;
}

export function addPanel({ app, tracker, means, state, palette, launcher, lab, restorer, bar }: Surroundings): void {
  tellEnds(tracker, means);
  const courses = new Kept(state, "dtdebug-wizard", readCourse);
  const history = new History(new Kept(state, "dtdebug-history", readEntries), means, tracker);
  const open = () => app.shell.activateById(PANEL);
  const panel = new DebugPanel(
    tracker,
    addHangs(app, tracker, palette, bar, means, () => beside(open)),
    new Wizard(means, courses),
    new HistoryView(history, means),
    means,
  );

  let side: string | null = null;
  const put = () => {
    if (side !== means.side) {
      side = means.side;
      app.shell.add(panel, side, { rank: 900, type: "dtdebug" });
    }
  };
  put();
  means.changed.connect(put);
  restorer?.add(panel, panel.id);

  const guide = (place: Place | null) => {
    open();
    panel.guide(place);
  };
  means.guided.connect((_, place) => guide(place));

  const whys = new WidgetTracker<MainAreaWidget>({ namespace: "dtdebug-why" });
  const why = () => {
    if (!lab) {
      open(); // Notebook 7 has one widget in its main area, which is the notebook
      return;
    }
    const shown = whys.currentWidget ?? whyWidget(new Wizard(means, courses), means);
    if (!shown.isAttached) {
      void whys.add(shown);
      lab.add(shown, "main");
    }
    lab.activateById(shown.id);
  };
  const lessons = new WidgetTracker<MainAreaWidget>({ namespace: "dtdebug-lessons" });
  const learn = () => {
    const shown = lessons.currentWidget ?? lessonsWidget(app, means);
    if (!shown.isAttached) {
      void lessons.add(shown);
      app.shell.add(shown, "main");
    }
    app.shell.activateById(shown.id);
  };
  const current = () => tracker?.currentWidget ?? null;
  addCommands(app, tracker, palette, launcher, means, {
    openPanel: () => {
      open();
      const at = document.activeElement;
      // it can't take the keyboard before it is drawn, and must not from one who has gone on by then
      setTimeout(() => document.activeElement === at && panel.takeFocus(), DRAWN);
    },
    learn,
    guide: (cell) => guide(placed(current(), cell)),
    clearHistory: async () => history.clear(current()?.context.path ?? ""),
    why,
  });
  void restorer?.restore(whys, { command: WHY, name: () => "why" });
  void restorer?.restore(lessons, { command: LEARN, name: () => "lessons" });

  means.ended.connect((_, { notebook, cell, success }) => {
    const isFront = notebook === current()?.content;
    if (means.opens === "failure" && isFront && !success && isDiagnosed(cell.model)) {
      beside(open);
    }
  });
  tracker?.widgetAdded.connect((_, { context }) => {
    let { path } = context;
    context.pathChanged.connect((_, next) => {
      void Promise.all([courses.move(path, next), history.move(path, next)]);
      path = next;
    });
  });
}

function placed(panel: NotebookPanel | null, cell: CodeCell | null): Place | null {
  return panel && cell && { panel, cell };
}

/** Opens without taking the keyboard from where it is. */
function beside(open: () => void): void {
  const at = document.activeElement;
  open();
  if (at instanceof HTMLElement) {
    at.focus();
  }
}
