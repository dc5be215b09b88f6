/** The outputs that are ours. Both are safe in a notebook that is not trusted: data becomes text, never markup. */

import type { IRenderMimeRegistry } from "@jupyterlab/rendermime";

import { DiagnosisOutput } from "./card.js";
import { FailedOutput } from "./failed.js";
import type { Means } from "./means.js";
import { DIAGNOSIS } from "./place.js";

const ERROR = "application/vnd.jupyter.error";
const STDERR = "application/vnd.jupyter.stderr";
const HTML = "text/html";

export function addRenderers(rendermime: IRenderMimeRegistry, means: Means): void {
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
