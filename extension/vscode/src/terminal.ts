/** Commands put into a terminal, so that the user sees, keeps and can change them. */

import * as vscode from "vscode";

/** Milliseconds for a shell that never says that it is ready, as one that VS Code does not know. */
const PATIENCE = 3000;
/** Milliseconds from a shell's first sign, which its start-up file gives, to its prompt. */
const TO_PROMPT = 500;
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
  send(open(name), text, false);
}

export function runIn(name: string, text: string, cwd?: vscode.Uri, env?: Record<string, string>): vscode.Terminal {
  const terminal = open(name, cwd, env);
  send(terminal, text, true);
  return terminal;
}

function open(name: string, cwd?: vscode.Uri, env?: Record<string, string>): vscode.Terminal {
  const terminal = vscode.window.createTerminal({ name, ...(cwd && { cwd }), ...(env && { env }) });
  terminal.show();
  return terminal;
}

/** Once the shell is ready: what comes before is shown twice, as it is typed and again at the prompt. */
function send(terminal: vscode.Terminal, text: string, enter: boolean): void {
  const now = (): void => {
    if (terminal.exitStatus === undefined) {
      terminal.sendText(text, enter);
    }
  };
  const becomesReady = (vscode.window as Since193).onDidChangeTerminalShellIntegration;
  if (becomesReady === undefined) {
    now();
    return;
  }
  const done = (): void => {
    heard.dispose();
    now();
  };
  let timer = setTimeout(done, PATIENCE);
  const heard = becomesReady((ready) => {
    if (ready.terminal === terminal) {
      clearTimeout(timer);
      timer = setTimeout(done, TO_PROMPT);
    }
  });
}

interface Since193 {
  onDidChangeTerminalShellIntegration?: vscode.Event<{ readonly terminal: vscode.Terminal }>;
}
