/** Which Python interpreter runs the server, and whether it can. */

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";

export interface Interpreter {
  path: string;
  /** Who named it, as the end of a sentence: "from the setting dtdebug.interpreter". */
  from: string;
}

/** What stands in the way; each has a message of its own. */
export type Obstacle = "not installed" | "too old" | "does not start";

const PYTHON_EXTENSION = "ms-python.python";
const WINDOWS = process.platform === "win32";
const PROBE_MS = 20_000;

/** Exit statuses are ours, so that a crash of the interpreter is not taken for an answer. */
const PROBE = `
import sys
if sys.version_info < (3, 11):
    sys.exit(12)
from importlib.util import find_spec
try:
    sys.exit(0 if find_spec("dtdebug_lsp.__main__") and find_spec("pygls") else 11)
except ImportError:
    sys.exit(11)
`;
const ANSWERS: Record<number, Obstacle> = { 11: "not installed", 12: "too old" };

/** The part of the Python extension's API that is used here. */
interface PythonExtension {
  environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(environment: { path: string }): Promise<{ executable: { uri?: vscode.Uri } } | undefined>;
    onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

/** The first that somebody named; it is not passed over where dtdebug is missing, so that the user can tell why. */
export async function findInterpreter(): Promise<Interpreter> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const own = vscode.workspace.getConfiguration("dtdebug", folder).get<string>("interpreter")?.trim();
  if (own) {
    return { path: expand(own, folder), from: "from the setting dtdebug.interpreter" };
  }
  if (vscode.workspace.isTrusted) {
    const named = (await selected(folder)) ?? byDefault(folder) ?? environment();
    if (named) {
      return named;
    }
  }
  return { path: WINDOWS ? "python" : "python3", from: "found on the PATH" };
}

async function selected(folder: vscode.Uri | undefined): Promise<Interpreter | undefined> {
  const api = await pythonExtension();
  if (!api) {
    return undefined;
  }
  const active = api.environments.getActiveEnvironmentPath(folder);
  const details = await api.environments.resolveEnvironment(active);
  const path = details?.executable.uri?.fsPath;
  return path ? { path, from: "selected in the Python extension" } : undefined;
}

function byDefault(folder: vscode.Uri | undefined): Interpreter | undefined {
  const path = vscode.workspace.getConfiguration("python", folder).get<string>("defaultInterpreterPath")?.trim();
  if (!path || path === "python") {
    return undefined; // the Python extension's default says nothing
  }
  return { path: expand(path, folder), from: "from the setting python.defaultInterpreterPath" };
}

function environment(): Interpreter | undefined {
  const places = (vscode.workspace.workspaceFolders ?? []).map(({ uri }) =>
    WINDOWS ? join(uri.fsPath, ".venv", "Scripts", "python.exe") : join(uri.fsPath, ".venv", "bin", "python"),
  );
  const path = places.find((place) => existsSync(place));
  return path ? { path, from: "in .venv of the workspace" } : undefined;
}

function expand(path: string, folder: vscode.Uri | undefined): string {
  const home = process.env["HOME"] ?? process.env["USERPROFILE"] ?? "~";
  return path.replace("${workspaceFolder}", folder?.fsPath ?? "").replace(/^~(?=[\\/])/, home);
}

async function pythonExtension(): Promise<PythonExtension | undefined> {
  const extension = vscode.extensions.getExtension<PythonExtension>(PYTHON_EXTENSION);
  try {
    return await extension?.activate();
  } catch {
    return undefined; // its own troubles are not ours
  }
}

export function hasPythonExtension(): boolean {
  return vscode.extensions.getExtension(PYTHON_EXTENSION) !== undefined;
}

/** Calls back when the user selects another environment in the Python extension. */
export async function onSelection(changed: () => void): Promise<vscode.Disposable | undefined> {
  return (await pythonExtension())?.environments.onDidChangeActiveEnvironmentPath(changed);
}

/** Asks the interpreter itself, without importing anything of the workspace. */
export function obstacle(interpreter: Interpreter): Promise<Obstacle | undefined> {
  return new Promise((resolve) => {
    execFile(interpreter.path, ["-c", PROBE], { env: safeEnvironment(), timeout: PROBE_MS }, (error) => {
      resolve(error ? (ANSWERS[Number(error.code)] ?? "does not start") : undefined);
    });
  });
}

export function obstacleMessage({ path, from }: Interpreter, obstacle: Obstacle): string {
  const who = `${path} (${from})`;
  switch (obstacle) {
    case "not installed":
      return `dtdebug[lsp] is not installed for ${who}, so your files are not checked.`;
    case "too old":
      return `${who} is older than Python 3.11, so dtdebug can't run there.`;
    case "does not start":
      return `${who} can't be started, so dtdebug does not check your files.`;
  }
}

/** A json.py or torch.py beside the user's script must not be taken for the module of that name. */
export function safeEnvironment(): NodeJS.ProcessEnv {
  return { ...process.env, PYTHONSAFEPATH: "1" };
}
