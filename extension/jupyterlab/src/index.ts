/** The plugin: shows diagnoses, offers them under failed cells. */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { ICommandPalette } from "@jupyterlab/apputils";
import { INotebookTracker } from "@jupyterlab/notebook";
import { IRenderMimeRegistry } from "@jupyterlab/rendermime";
import { ISettingRegistry } from "@jupyterlab/settingregistry";
import { IStateDB } from "@jupyterlab/statedb";
import { ITranslator, nullTranslator } from "@jupyterlab/translation";

import { DiagnosisOutput } from "./card.js";
import { addCommands } from "./commands.js";
import { FailedOutput } from "./failed.js";
import { keeper } from "./feedback.js";
import { Means } from "./means.js";
import { DIAGNOSIS } from "./place.js";

const ID = "dtdebug:plugin";
const ERROR = "application/vnd.jupyter.error";
const STDERR = "application/vnd.jupyter.stderr";
const HTML = "text/html";

const plugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: "Shows what dtdebug says of a failed distributed training, and asks it.",
  autoStart: true,
  requires: [IRenderMimeRegistry],
  optional: [INotebookTracker, ICommandPalette, ISettingRegistry, IStateDB, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    rendermime: IRenderMimeRegistry,
    tracker: INotebookTracker | null,
    palette: ICommandPalette | null,
    settings: ISettingRegistry | null,
    state: IStateDB | null,
    translator: ITranslator | null,
  ) => {
    const means = new Means((translator ?? nullTranslator).load("dtdebug"), state && keeper(state));
    settings?.load(ID).then(
      (loaded) => means.follow(loaded),
      () => undefined, // without settings all is on
    );
    addRenderers(rendermime, means);
    if (tracker) {
      addCommands(app, tracker, palette, means);
    }
  },
};

/** Both are safe in a notebook that is not trusted: data becomes text, never markup. */
function addRenderers(rendermime: IRenderMimeRegistry, means: Means): void {
  rendermime.addFactory({
    safe: true,
    mimeTypes: [DIAGNOSIS],
    defaultRank: 10,
    createRenderer: (options) => {
      const plain = () => rendermime.getFactory(HTML)?.createRenderer({ ...options, mimeType: HTML });
      return new DiagnosisOutput(means, () => plain() ?? rendermime.createRenderer("text/plain"));
    },
  });
  const before = rendermime.getFactory(ERROR);
  const factory = before ?? rendermime.getFactory(STDERR);
  if (factory) {
    const mimeType = before ? ERROR : STDERR;
    rendermime.addFactory({
      safe: true,
      mimeTypes: [ERROR],
      defaultRank: -10,
      createRenderer: (options) =>
        new FailedOutput(factory.createRenderer({ ...options, mimeType }), means, options.mimeType),
    });
  }
}

export default plugin;
