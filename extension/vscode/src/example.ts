/** The failing example of the walkthrough: a copy of its own, opened and run. */

import * as vscode from "vscode";
import { findInterpreter } from "./interpreter";
import { line, runIn } from "./terminal";

const NAME = "example.py";
/** A step takes milliseconds here, so this long is a hang. */
const HANG_AFTER_S = "5";

export class Example {
  private readonly folder: vscode.Uri;
  private readonly file: vscode.Uri;
  private terminal: vscode.Terminal | undefined;

  constructor(private readonly context: vscode.ExtensionContext) {
    this.folder = vscode.Uri.joinPath(context.globalStorageUri, "example");
    this.file = vscode.Uri.joinPath(this.folder, NAME);
  }

  /** Always the failing text again: whoever opens it wants to see it fail. */
  async open(): Promise<void> {
    const original = vscode.Uri.joinPath(this.context.extensionUri, "example", NAME);
    await vscode.workspace.fs.createDirectory(this.folder);
    await vscode.workspace.fs.copy(original, this.file, { overwrite: true });
    await vscode.window.showTextDocument(this.file, { preview: false, viewColumn: vscode.ViewColumn.Beside });
  }

  async run(): Promise<void> {
    const document = vscode.workspace.textDocuments.find(({ uri }) => uri.toString() === this.file.toString());
    if (!document) {
      await this.open();
    }
    await document?.save();
    const { path } = await findInterpreter();
    const watch = [path, "-P", "-m", "dtdebug", "run", "--hang-after", HANG_AFTER_S, "--"];
    const launch = [path, "-m", "torch.distributed.run", "--nproc-per-node", "2", NAME];
    this.terminal?.dispose(); // with the last run, which may still hang
    this.terminal = runIn("dtdebug: example", line([...watch, ...launch]), this.folder);
  }

  /** Steps of the walkthrough are done when the problem is shown, and when it is gone. */
  watch(): vscode.Disposable {
    let reported = false;
    return vscode.languages.onDidChangeDiagnostics(({ uris }) => {
      if (!uris.some((uri) => uri.toString() === this.file.toString())) {
        return;
      }
      const problems = vscode.languages.getDiagnostics(this.file).some(isOfCheck);
      const fixed = reported && !problems && this.isOpen();
      reported ||= problems;
      void vscode.commands.executeCommand("setContext", "dtdebug.exampleReported", reported);
      void vscode.commands.executeCommand("setContext", "dtdebug.exampleMended", fixed);
    });
  }

  /** Problems of a closed file go away without being fixed. */
  private isOpen(): boolean {
    return vscode.workspace.textDocuments.some(({ uri, isClosed }) => !isClosed && uri.toString() === this.file.toString());
  }
}

/** The failed run stays shown until the next one, so it says nothing about the text as it is now. */
function isOfCheck({ source, code }: vscode.Diagnostic): boolean {
  return source === "dtdebug" && String(typeof code === "object" ? code.value : code).startsWith("DT");
}
