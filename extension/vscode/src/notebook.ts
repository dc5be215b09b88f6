/** Does what the buttons of a diagnosis in a notebook ask for. */

import * as vscode from "vscode";
import { lines, parts, patched } from "../../shared/src/diff.js";
import type { Applied, Message } from "../../shared/src/notebook.js";

const RENDERER = "dtdebug-diagnosis";
/** Answers are words of the knowledge; anything else in a magic line would be somebody else's code. */
const WORD = /^[\w.-]+$/;

export function answerRenderer(): vscode.Disposable {
  const messaging = vscode.notebooks.createRendererMessaging(RENDERER);
  return messaging.onDidReceiveMessage(async ({ editor, message }) => {
    const asked = message as Message;
    if (asked.type === "apply") {
      const done = await apply(String(asked.diff), editor).catch(() => false);
      const reply: Applied = { type: "applied", id: asked.id, done };
      await messaging.postMessage(reply, editor);
      return;
    }
    const source = cellFor(asked);
    if (source !== undefined) {
      await insertBelow(editor, source);
    }
  });
}

/** The cell that does what is asked for. */
export function cellFor(message: Message): string | undefined {
  switch (message.type) {
    case "answer":
      return [message.key, message.value].every((word) => WORD.test(word))
        ? `%dtdebug answer ${message.key} ${message.value}`
        : undefined;
    default:
      return undefined;
  }
}

/** As a new cell that is shown and not run: the user reads it first. */
async function insertBelow(editor: vscode.NotebookEditor, source: string): Promise<void> {
  const at = editor.selection.end;
  const cell = new vscode.NotebookCellData(vscode.NotebookCellKind.Code, source, "python");
  const edit = new vscode.WorkspaceEdit();
  edit.set(editor.notebook.uri, [vscode.NotebookEdit.insertCells(at, [cell])]);
  await vscode.workspace.applyEdit(edit);
  show(editor, at);
}

function show(editor: vscode.NotebookEditor, at: number): void {
  const range = new vscode.NotebookRange(at, at + 1);
  editor.selections = [range];
  editor.revealRange(range, vscode.NotebookEditorRevealType.InCenterIfOutsideViewport);
}

/** Makes the change in the cells that the diff fits, else in the file that it names; nothing is run, and Undo takes it back. */
async function apply(diff: string, editor: vscode.NotebookEditor): Promise<boolean> {
  const cells = new Set(editor.notebook.getCells().filter((cell) => cell.kind === vscode.NotebookCellKind.Code));
  const edit = new vscode.WorkspaceEdit();
  const fit = parts(diff).map((part) => {
    const cell = [...cells].find(({ document }) => replace(document, part, edit));
    return cell && cells.delete(cell) ? cell.index : -1;
  });
  if (!fit.includes(-1) && (await vscode.workspace.applyEdit(edit))) {
    show(editor, fit[0] ?? 0);
    return true;
  }
  for (const file of filesOf(diff, editor.notebook.uri)) {
    const document = await vscode.workspace.openTextDocument(file).then(undefined, () => undefined);
    const change = new vscode.WorkspaceEdit();
    if (document && replace(document, diff, change) && (await vscode.workspace.applyEdit(change))) {
      await vscode.window.showTextDocument(document, { preserveFocus: true, viewColumn: vscode.ViewColumn.Beside });
      return true;
    }
  }
  return false;
}

/** Adds the change of a document to an edit if the diff fits it. */
function replace(document: vscode.TextDocument, diff: string, edit: vscode.WorkspaceEdit): boolean {
  const before = document.getText();
  const after = patched(diff, before);
  if (after === null) {
    return false;
  }
  edit.replace(document.uri, new vscode.Range(document.positionAt(0), document.positionAt(before.length)), after);
  return true;
}

/** Where the file that a diff names can be: beside the notebook and in the folders that are open, and nowhere else. */
function filesOf(diff: string, notebook: vscode.Uri): vscode.Uri[] {
  const name = fileOf(diff);
  if (name === undefined) {
    return [];
  }
  const folders = (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri);
  const beside = vscode.Uri.joinPath(notebook, "..");
  const isOpen = folders.some(({ path }) => beside.path === path || beside.path.startsWith(`${path}/`));
  return [...(isOpen ? [beside] : []), ...folders].map((folder) => vscode.Uri.joinPath(folder, name));
}

/** The file that a diff names; none if its path leads out of the folder in which it is looked for. */
export function fileOf(diff: string): string | undefined {
  const head = lines(diff).find(({ kind, text }) => kind === "head" && text.startsWith("+++ "));
  const name = head?.text.slice(4).replace(/\t.*$/, "").replace(/^b\//, "");
  return !name || name.startsWith("/") || name.split("/").includes("..") ? undefined : name;
}
