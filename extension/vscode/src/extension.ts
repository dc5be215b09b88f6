/** Activation: what is registered, and when the server starts. */

import * as vscode from "vscode";
import { userCommands } from "./commands";
import { DOCUMENTS } from "./documents";
import { Example } from "./example";
import { onSelection } from "./interpreter";
import { answerRenderer } from "./notebook";
import { Server } from "./server";
import { statusItem, tellObstacle } from "./status";
import { Explanations } from "./symptoms";

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const output = vscode.window.createOutputChannel("dtdebug");
  const explanations = new Explanations();
  const example = new Example(context);
  const started = new Server(output, (command, args, result) => {
    if (command === "dtdebug.explain" && typeof result === "string") {
      void explanations.show(String(args[0]), result);
    }
  });
  server = started;
  const commands = userCommands({ server, output, explanations, example, memory: context.workspaceState });
  context.subscriptions.push(
    output,
    explanations.register(),
    example.watch(),
    answerRenderer(),
    statusItem(server),
    server.onState((state) => {
      if (state.kind === "obstacle") {
        void tellObstacle(context.workspaceState, state.interpreter, state.obstacle);
      }
    }),
    ...Object.entries(commands).map(([name, action]) => vscode.commands.registerCommand(name, action)),
    ...startWhenNeeded(server),
  );
  void onSelection(() => restartIfStarted(started)).then((selection) => selection && context.subscriptions.push(selection));
}

/** VS Code waits for this, so that no server outlives its window. */
export async function deactivate(): Promise<void> {
  await server?.dispose();
}

/** The server costs memory: it starts with the first document that it can read, and again when its settings change. */
function startWhenNeeded(server: Server): vscode.Disposable[] {
  const startFor = (document: vscode.TextDocument): void => {
    const waits = server.state.kind === "idle" || server.state.kind === "obstacle"; // it may be installed by now
    if (waits && vscode.languages.match(DOCUMENTS, document) > 0) {
      void server.start();
    }
  };
  vscode.workspace.textDocuments.forEach(startFor);
  return [
    vscode.workspace.onDidOpenTextDocument(startFor),
    vscode.workspace.onDidGrantWorkspaceTrust(() => restartIfStarted(server)),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (["interpreter", "serverCommand"].some((name) => change.affectsConfiguration(`dtdebug.${name}`))) {
        restartIfStarted(server);
      }
    }),
  ];
}

function restartIfStarted(server: Server): void {
  if (server.state.kind !== "idle") {
    void server.restart();
  }
}
