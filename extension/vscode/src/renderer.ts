/** Shows a diagnosis in a notebook: the card that all front ends share. */

import type { RendererContext } from "vscode-notebook-renderer";
import { activate as activateCard, type Renderer } from "../../shared/src/notebook.js";

export function activate(context: RendererContext<void>): Renderer {
  return activateCard(context, ["answer", "apply"]); // what notebook.ts acts upon
}
