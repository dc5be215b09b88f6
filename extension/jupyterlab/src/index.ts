/** The plugin: shows diagnoses, offers them under failed cells, guides to the cause, watches what hangs. */

import { ILabShell, ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from "@jupyterlab/application";
import { ICommandPalette } from "@jupyterlab/apputils";
import { ILauncher } from "@jupyterlab/launcher";
import { INotebookTracker } from "@jupyterlab/notebook";
import { IRenderMimeRegistry } from "@jupyterlab/rendermime";
import { ISettingRegistry } from "@jupyterlab/settingregistry";
import { IStateDB } from "@jupyterlab/statedb";
import { IStatusBar } from "@jupyterlab/statusbar";
import { ITranslator, nullTranslator } from "@jupyterlab/translation";

import { translateBy } from "../../shared/src/trans.js";
import { keeper } from "./feedback.js";
import { browserState } from "./kept.js";
import { Means } from "./means.js";
import { addRenderers } from "./renderers.js";
import { addPanel } from "./sidebar.js";

const ID = "dtdebug:plugin";

const plugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: "Shows what dtdebug says of a failed distributed training, and asks it.",
  autoStart: true,
  requires: [IRenderMimeRegistry],
  optional: [
    INotebookTracker,
    ISettingRegistry,
    IStateDB,
    ITranslator,
    ICommandPalette,
    ILauncher,
    ILabShell,
    ILayoutRestorer,
    IStatusBar,
  ],
  activate: (
    app: JupyterFrontEnd,
    rendermime: IRenderMimeRegistry,
    tracker: INotebookTracker | null,
    settings: ISettingRegistry | null,
    database: IStateDB | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    lab: ILabShell | null,
    restorer: ILayoutRestorer | null,
    bar: IStatusBar | null,
  ) => {
    const server = app.serviceManager.serverSettings;
    const state = lab && database ? database : browserState(window.localStorage, server.baseUrl);
    const trans = (translator ?? nullTranslator).load("dtdebug");
    translateBy(trans);
    const means = new Means(trans, keeper(state), server);
    settings?.load(ID).then(
      (loaded) => means.follow(loaded),
      () => undefined, // without settings all is as they say by default
    );
    addRenderers(rendermime, means);
    addPanel({ app, tracker, means, state, palette, launcher, lab, restorer, bar });
  },
};

export default plugin;
