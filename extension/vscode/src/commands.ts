/** The commands of the palette; their titles are in package.json. */

import * as vscode from "vscode";
import type { Example } from "./example";
import { findInterpreter } from "./interpreter";
import { learn } from "./learn";
import { selectInterpreter } from "./select";
import type { Server } from "./server";
import { forgetTold } from "./status";
import { explainSymptom, type Explanations } from "./symptoms";
import { line, runIn } from "./terminal";

export interface Parts {
  server: Server;
  output: vscode.OutputChannel;
  explanations: Explanations;
  example: Example;
  memory: vscode.Memento;
}

/** Names differ from those of the server's own commands, which the client registers under their own names. */
export function userCommands(parts: Parts): Record<string, () => unknown> {
  const { server, output, explanations, example, memory } = parts;
  const withServer = (action: () => Promise<unknown>) => async (): Promise<void> => {
    await forgetTold(memory);
    await server.start();
    if (server.state.kind === "running") {
      await action();
    }
  };
  return {
    "dtdebug.restart": async () => {
      await forgetTold(memory);
      await server.restart();
    },
    "dtdebug.explainSymptom": withServer(() => explainSymptom(server, explanations)),
    "dtdebug.wizard": openWizard,
    "dtdebug.check": withServer(() => checkWorkspace(server)),
    "dtdebug.dismiss": withServer(() => server.ask("dtdebug.dismissFailure")),
    "dtdebug.example": () => example.open(),
    "dtdebug.runExample": () => example.run(),
    "dtdebug.learn": () => learn(memory),
    "dtdebug.selectInterpreter": selectInterpreter,
    "dtdebug.showOutput": () => output.show(),
  };
}

async function openWizard(): Promise<void> {
  const { path } = await findInterpreter();
  runIn("dtdebug: wizard", line([path, "-P", "-m", "dtdebug", "wizard"]));
}

/** The server shows its progress itself. */
async function checkWorkspace(server: Server): Promise<void> {
  await server.ask("dtdebug.checkWorkspace");
  await vscode.commands.executeCommand("workbench.actions.view.problems");
}
