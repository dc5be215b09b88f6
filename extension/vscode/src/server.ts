/** Starts, stops and asks the language server. */

import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions, RevealOutputChannelOn } from "vscode-languageclient/node";
import { DOCUMENTS } from "./documents";
import { findInterpreter, type Interpreter, type Obstacle, obstacle, obstacleMessage, safeEnvironment } from "./interpreter";

export type State =
  | { kind: "idle" }
  | { kind: "starting" }
  | { kind: "running"; command: string }
  | { kind: "obstacle"; interpreter: Interpreter; obstacle: Obstacle }
  | { kind: "failed"; reason: string };

export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private turn: Promise<void> = Promise.resolve();
  private readonly changed = new vscode.EventEmitter<State>();
  readonly onState = this.changed.event;
  state: State = { kind: "idle" };

  /** @param show gets the result of a command that the server itself offered, in a quick fix or code lens. */
  constructor(
    private readonly output: vscode.OutputChannel,
    private readonly show: (command: string, args: unknown[], result: unknown) => void,
  ) {}

  start(): Promise<void> {
    return this.next(async () => {
      if (!this.client) {
        await this.begin();
      }
    });
  }

  restart(): Promise<void> {
    return this.next(async () => {
      await this.end();
      await this.begin();
    });
  }

  /** The result of a command of the server, which is started if need be; undefined if it can't be. */
  async ask<T>(command: string, ...args: unknown[]): Promise<T | undefined> {
    await this.start();
    return this.client?.sendRequest<T>("workspace/executeCommand", { command, arguments: args });
  }

  async dispose(): Promise<void> {
    await this.next(() => this.end());
    this.changed.dispose();
  }

  /** Starts and stops one after another, whatever the user presses meanwhile. */
  private next(step: () => Promise<void>): Promise<void> {
    this.turn = this.turn.then(step, step);
    return this.turn;
  }

  private async begin(): Promise<void> {
    this.enter({ kind: "starting" });
    const command = await this.command();
    if (!command) {
      return;
    }
    this.output.appendLine(`Starting ${command.join(" ")}`);
    const client = new LanguageClient("dtdebug", "dtdebug", executable(command), this.options());
    try {
      await client.start();
      this.client = client;
      this.enter({ kind: "running", command: command.join(" ") });
    } catch (error) {
      this.enter({ kind: "failed", reason: String(error) });
      await client.dispose().catch(() => undefined); // a client that never ran can't be stopped
    }
  }

  private async command(): Promise<string[] | undefined> {
    const own = vscode.workspace.getConfiguration("dtdebug").get<string[]>("serverCommand") ?? [];
    if (own.length > 0) {
      return own;
    }
    const interpreter = await findInterpreter();
    const found = await obstacle(interpreter);
    if (found) {
      this.output.appendLine(obstacleMessage(interpreter, found));
      this.enter({ kind: "obstacle", interpreter, obstacle: found });
      return undefined;
    }
    return [interpreter.path, "-m", "dtdebug_lsp"];
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: DOCUMENTS,
      initializationOptions: vscode.workspace.getConfiguration("dtdebug"),
      synchronize: { configurationSection: "dtdebug" },
      outputChannel: this.output,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      middleware: {
        executeCommand: async (command, args, next) => {
          const result: unknown = await next(command, args);
          this.show(command, args, result);
          return result;
        },
      },
    };
  }

  private async end(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    this.enter({ kind: "idle" });
    await client?.dispose().catch((error: unknown) => this.output.appendLine(String(error)));
  }

  private enter(state: State): void {
    this.state = state;
    this.changed.fire(state);
  }
}

function executable([command = "", ...args]: string[]) {
  const cwd = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  return { command, args, options: { env: safeEnvironment(), ...(cwd && { cwd }) } };
}
