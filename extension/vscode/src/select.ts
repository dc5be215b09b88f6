/** Lets the user select the interpreter that runs the server. */

import * as vscode from "vscode";
import { hasPythonExtension } from "./interpreter";

/** In the Python extension if it is there, so that one choice holds for both. */
export async function selectInterpreter(): Promise<void> {
  const settings = vscode.workspace.getConfiguration("dtdebug");
  if (hasPythonExtension() && !settings.get<string>("interpreter")) {
    await vscode.commands.executeCommand("python.setInterpreter");
    return;
  }
  const path = await vscode.window.showInputBox({
    title: "dtdebug: interpreter",
    prompt: "Path of a Python (3.11 or newer) that has dtdebug[lsp]",
    value: settings.get<string>("interpreter") ?? "",
    placeHolder: "/path/to/.venv/bin/python",
    ignoreFocusOut: true,
  });
  if (path !== undefined) {
    const inWorkspace = vscode.workspace.workspaceFolders && vscode.workspace.isTrusted;
    const target = inWorkspace ? vscode.ConfigurationTarget.Workspace : vscode.ConfigurationTarget.Global;
    await settings.update("interpreter", path.trim() || undefined, target);
  }
}
