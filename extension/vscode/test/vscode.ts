/** The parts of VS Code that the tested modules use; a test sets what they answer. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

type Values = Record<string, unknown>;

export const answers = {
  settings: {} as Values,
  folders: [] as string[],
  trusted: true,
  extensions: {} as Record<string, unknown>,
  /** The button that the user presses. */
  pressed: undefined as string | undefined,
  /** The label of the row that the user takes. */
  picked: undefined as string | undefined,
  /** What the user types over the value that is proposed. */
  typed: undefined as string | undefined,
  /** What the shell does with a line. */
  shell: (_line: string): void => undefined,
};

const initial = { ...answers };

/** What was done, in order. */
export let done: unknown[][] = [];

export function reset(): void {
  Object.assign(answers, initial);
  done = [];
}

/** A new folder, removed when the tests end. */
export function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "dtdebug-"));
  process.once("exit", () => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** What a workspace remembers. */
export function memory() {
  const kept = new Map<string, unknown>();
  return {
    keys: () => [...kept.keys()],
    get: <T>(key: string, otherwise?: T) => (kept.get(key) ?? otherwise) as T,
    update: (key: string, value: unknown) => {
      kept.set(key, value);
      return Promise.resolve();
    },
  };
}

const uri = (fsPath: string) => ({ fsPath, toString: () => `file://${fsPath}` });

export const Uri = { file: uri };
export const env = { shell: "/bin/bash" };
export const LanguageStatusSeverity = { Information: 0, Warning: 1, Error: 2 };
export const QuickPickItemKind = { Separator: -1, Default: 0 };
export const ProgressLocation = { Notification: 15 };
export const ViewColumn = { Beside: -2 };

export const workspace = {
  get workspaceFolders() {
    return answers.folders.map((folder) => ({ uri: uri(folder) }));
  },
  get isTrusted() {
    return answers.trusted;
  },
  getConfiguration: (section: string) => ({ get: (key: string) => answers.settings[`${section}.${key}`] }),
};

export const extensions = {
  getExtension: (id: string) =>
    id in answers.extensions ? { activate: () => Promise.resolve(answers.extensions[id]) } : undefined,
};

export const window = {
  showWarningMessage: (message: string, ...buttons: string[]) => {
    done.push(["message", message, ...buttons]);
    return Promise.resolve(answers.pressed);
  },
  showInformationMessage: (message: string) => {
    done.push(["message", message]);
    return Promise.resolve();
  },
  showErrorMessage: (message: string) => {
    done.push(["error", message]);
    return Promise.resolve();
  },
  showQuickPick: async (offered: Promise<{ label: string }[]>) => {
    const rows = await offered;
    done.push(["pick", ...rows]);
    return rows.find(({ label }) => label === answers.picked);
  },
  withProgress: (_options: unknown, task: () => Promise<unknown>) => task(),
  showInputBox: ({ value }: { value?: string }) => {
    done.push(["ask", value]);
    return Promise.resolve(answers.typed ?? value);
  },
  showTextDocument: ({ fsPath }: { fsPath: string }) => {
    done.push(["show", fsPath]);
    return Promise.resolve();
  },
  createTerminal: ({ env }: { env?: Record<string, string> }) => ({
    show: () => env && done.push(["environment", env]),
    sendText: (text: string, run = true) => {
      done.push([run ? "run" : "type", text]);
      answers.shell(text);
    },
  }),
};

export const commands = {
  executeCommand: (...words: unknown[]) => {
    done.push(["command", ...words]);
    return Promise.resolve();
  },
};
