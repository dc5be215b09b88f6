/** Learning by breaking: labs that fail in a terminal, and notebooks to run. */

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";
import * as vscode from "vscode";
import { findInterpreter, obstacle, safeEnvironment } from "./interpreter";
import { forgetTold, tellObstacle } from "./status";
import { line, runIn } from "./terminal";

/** What is used of a row of `dtdebug lab list --format json`. */
interface Lab {
  id: string;
  title: string;
  symptom: string;
  difficulty?: string;
}

/** What is used of a notebook in `dtdebug learn --format json`. */
interface Notebook {
  id: string;
  title: string;
  summary: string;
}

/** A row to choose; a separator has nothing to begin. */
interface Row extends vscode.QuickPickItem {
  /** Name of the folder that is proposed. */
  folder?: string;
  begin?: (folder: string) => Promise<void>;
}

const ANSWER_MS = 60_000;
/** A terminal starts a shell and that a Python before the script is there. */
const COPY_MS = 60_000;
const LOOK_MS = 250;

export async function learn(memory: vscode.Memento): Promise<void> {
  if (!vscode.workspace.isTrusted) {
    const reason = "dtdebug: labs and notebooks are programs, and none is run in a workspace that you do not trust.";
    await vscode.window.showInformationMessage(reason);
    return;
  }
  const interpreter = await findInterpreter();
  const found = await obstacle(interpreter);
  if (found) {
    await forgetTold(memory);
    await tellObstacle(memory, interpreter, found);
    return;
  }
  try {
    await chooseAndBegin(interpreter.path);
  } catch (error) {
    await vscode.window.showErrorMessage(error instanceof Error ? error.message : String(error));
  }
}

async function chooseAndBegin(python: string): Promise<void> {
  const row = await vscode.window.showQuickPick(rows(python), {
    placeHolder: "A lab to fix, or a notebook to run: words, or a symptom's code",
    matchOnDescription: true,
    matchOnDetail: true,
    ignoreFocusOut: true, // the rows come later, and the page that asked takes the focus back
  });
  if (row?.begin) {
    const folder = await askFolder(row.folder ?? "");
    await (folder && row.begin(folder));
  }
}

async function rows(python: string): Promise<Row[]> {
  const [listed, known] = await Promise.all([
    ask(python, "lab", "list", "--format", "json"),
    ask(python, "learn", "--format", "json"),
  ]);
  const { labs } = JSON.parse(listed) as { labs: Lab[] };
  const { notebooks } = JSON.parse(known) as { notebooks: Notebook[] };
  labs.sort((one, other) => one.symptom.localeCompare(other.symptom, "en", { numeric: true }));
  return [
    separator("notebooks"),
    ...notebooks.map(({ id, title, summary }) => ({
      label: title,
      detail: summary,
      folder: `dtdebug-notebook-${id}`,
      begin: (folder: string) => openNotebook(python, id, folder),
    })),
    separator("labs"),
    ...labs.map(({ id, title, symptom, difficulty }) => ({
      label: title,
      description: difficulty ? `${symptom}, ${difficulty}` : symptom,
      folder: `dtdebug-lab-${id}`,
      begin: (folder: string) => startLab(python, id, folder),
    })),
  ];
}

function separator(label: string): Row {
  return { label, kind: vscode.QuickPickItemKind.Separator };
}

async function askFolder(name: string): Promise<string | undefined> {
  const folder = await vscode.window.showInputBox({
    title: "dtdebug: folder",
    prompt: "Files are copied to this folder, which is made if need be; none is overwritten",
    value: free(join(vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? tmpdir(), name)),
    ignoreFocusOut: true,
    validateInput: (value) => (isAbsolute(value.trim()) ? undefined : "The whole path of a folder, from the root on"),
  });
  return folder?.trim();
}

function free(folder: string): string {
  let path = folder;
  for (let number = 2; existsSync(path); number++) {
    path = `${folder}-${number}`;
  }
  return path;
}

async function startLab(python: string, id: string, folder: string): Promise<void> {
  const before = await filesIn(folder);
  const start = line([python, "-P", "-m", "dtdebug", "lab", "start", id, "."]);
  runIn("dtdebug: lab", start, vscode.Uri.file(folder), withPrograms(python));
  for (const deadline = Date.now() + COPY_MS; Date.now() < deadline; await setTimeout(LOOK_MS)) {
    const script = await added(folder, ".py", before);
    if (script) {
      await vscode.window.showTextDocument(script, { preview: false, viewColumn: vscode.ViewColumn.Beside });
      return;
    }
  } // no script: the terminal says why
}

/** The user goes on with `dtdebug lab check` in a terminal in which the environment may not be activated. */
function withPrograms(python: string): Record<string, string> | undefined {
  return isAbsolute(python) ? { PATH: [dirname(python), process.env["PATH"] ?? ""].join(delimiter) } : undefined;
}

async function openNotebook(python: string, id: string, folder: string): Promise<void> {
  const before = await filesIn(folder);
  const progress = { location: vscode.ProgressLocation.Notification, title: "dtdebug: copying the notebook" };
  await vscode.window.withProgress(progress, () => ask(python, "learn", id, folder));
  const notebook = await added(folder, ".ipynb", before);
  await (notebook && vscode.commands.executeCommand("vscode.open", notebook));
}

async function filesIn(folder: string): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  return readdir(folder);
}

async function added(folder: string, ending: string, before: string[]): Promise<vscode.Uri | undefined> {
  const name = (await readdir(folder)).find((file) => file.endsWith(ending) && !before.includes(file));
  return name === undefined ? undefined : vscode.Uri.file(join(folder, name));
}

/** What dtdebug prints; an error with the last line of what it complains of if it fails. */
async function ask(python: string, ...words: string[]): Promise<string> {
  const options = { env: safeEnvironment(), timeout: ANSWER_MS };
  try {
    return (await promisify(execFile)(python, ["-m", "dtdebug", ...words], options)).stdout;
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    throw new Error(stderr?.trim().split("\n").at(-1) || message);
  }
}
