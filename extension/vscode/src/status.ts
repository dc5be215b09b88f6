/** Tells how the server does: always beside the language of an editor, once in a message if it can't run. */

import * as vscode from "vscode";
import { DOCUMENTS } from "./documents";
import { type Interpreter, type Obstacle, obstacleMessage } from "./interpreter";
import type { Server, State } from "./server";
import { line, typeInto } from "./terminal";

const SHOW_INSTALL = "Show install command";
const SELECT = "Select interpreter...";
const TOLD = "dtdebug.told";

/** The message is shown once for each interpreter of a workspace, however often the window is opened. */
export async function tellObstacle(memory: vscode.Memento, interpreter: Interpreter, obstacle: Obstacle): Promise<void> {
  const told = memory.get<string[]>(TOLD, []);
  const key = `${obstacle}: ${interpreter.path}`;
  if (told.includes(key)) {
    return;
  }
  await memory.update(TOLD, [...told, key]);
  const choices = obstacle === "not installed" ? [SHOW_INSTALL, SELECT] : [SELECT];
  const choice = await vscode.window.showWarningMessage(obstacleMessage(interpreter, obstacle), ...choices);
  if (choice === SHOW_INSTALL) {
    typeInto("dtdebug: install", line([interpreter.path, "-m", "pip", "install", "dtdebug[lsp]"]));
  } else if (choice === SELECT) {
    await vscode.commands.executeCommand("dtdebug.selectInterpreter");
  }
}

/** Who asks for something that needs the server shall be told again why it can't be had. */
export async function forgetTold(memory: vscode.Memento): Promise<void> {
  await memory.update(TOLD, undefined);
}

/** An entry in the menu `{}` of the status bar that follows the server's state. */
export function statusItem(server: Server): vscode.Disposable {
  const item = vscode.languages.createLanguageStatusItem("dtdebug", DOCUMENTS);
  item.name = "dtdebug";
  const follow = (state: State): void => {
    item.busy = state.kind === "starting";
    item.severity = vscode.LanguageStatusSeverity.Information;
    item.text = "dtdebug";
    switch (state.kind) {
      case "idle":
      case "starting":
        item.detail = state.kind === "idle" ? "not started" : "starting";
        break;
      case "running":
        item.detail = state.command;
        item.command = { command: "dtdebug.restart", title: "Restart" };
        break;
      case "obstacle":
        item.severity = vscode.LanguageStatusSeverity.Warning;
        item.detail = obstacleMessage(state.interpreter, state.obstacle);
        item.command = { command: "dtdebug.selectInterpreter", title: "Select interpreter" };
        break;
      case "failed":
        item.severity = vscode.LanguageStatusSeverity.Error;
        item.detail = state.reason;
        item.command = { command: "dtdebug.showOutput", title: "Show output" };
    }
  };
  follow(server.state);
  return vscode.Disposable.from(item, server.onState(follow));
}
