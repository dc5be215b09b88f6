/** The parts of VS Code that the tested modules use; a test sets what they answer. */

type Values = Record<string, unknown>;

export const answers = {
  settings: {} as Values,
  folders: [] as string[],
  trusted: true,
  extensions: {} as Record<string, unknown>,
  /** The button that the user presses. */
  pressed: undefined as string | undefined,
};

/** What was done, in order. */
export let done: unknown[][] = [];

export function reset(): void {
  Object.assign(answers, { settings: {}, folders: [], trusted: true, extensions: {}, pressed: undefined });
  done = [];
}

const uri = (fsPath: string) => ({ fsPath, toString: () => `file://${fsPath}` });

export const Uri = { file: uri };
export const env = { shell: "/bin/bash" };
export const LanguageStatusSeverity = { Information: 0, Warning: 1, Error: 2 };

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
  createTerminal: () => ({
    show: () => undefined,
    sendText: (text: string, run = true) => done.push([run ? "run" : "type", text]),
  }),
};

export const commands = {
  executeCommand: (...words: unknown[]) => {
    done.push(["command", ...words]);
    return Promise.resolve();
  },
};
