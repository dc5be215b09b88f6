/** Commands put into a terminal, so that the user sees, keeps and can change them. */

import * as vscode from "vscode";

const PLAIN = /^[\w@%+=:,./\\~-]+$/;

/** One line for the user's shell. */
export function line(words: string[], shell = vscode.env.shell): string {
  if (/(powershell|pwsh)(\.exe)?$/i.test(shell)) {
    const quoted = words.map((word) => (PLAIN.test(word) ? word : `'${word.replaceAll("'", "''")}'`));
    return quoted[0]?.startsWith("'") ? `& ${quoted.join(" ")}` : quoted.join(" ");
  }
  if (/cmd(\.exe)?$/i.test(shell)) {
    return words.map((word) => (PLAIN.test(word) ? word : `"${word}"`)).join(" ");
  }
  return words.map((word) => (PLAIN.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}

/** Types without pressing Enter: what installs something is the user's to start. */
export function typeInto(name: string, text: string): void {
  open(name).sendText(text, false);
}

export function runIn(name: string, text: string, cwd?: vscode.Uri, env?: Record<string, string>): vscode.Terminal {
  const terminal = open(name, cwd, env);
  terminal.sendText(text);
  return terminal;
}

function open(name: string, cwd?: vscode.Uri, env?: Record<string, string>): vscode.Terminal {
  const terminal = vscode.window.createTerminal({ name, ...(cwd && { cwd }), ...(env && { env }) });
  terminal.show();
  return terminal;
}
