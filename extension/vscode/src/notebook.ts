/** Does what the buttons of a diagnosis in a notebook ask for. */

import * as vscode from "vscode";
import type { Message } from "../../shared/src/notebook.js";

const RENDERER = "dtdebug-diagnosis";
/** Answers are words of the knowledge; anything else in a magic line would be somebody else's code. */
const WORD = /^[\w.-]+$/;

export function answerRenderer(): vscode.Disposable {
  return vscode.notebooks.createRendererMessaging(RENDERER).onDidReceiveMessage(({ editor, message }) => {
    const source = cellFor(message as Message);
    if (source !== undefined) {
      void insertBelow(editor, source);
    }
  });
}

/** The cell that does what is asked for. */
export function cellFor(message: Message): string | undefined {
  switch (message.type) {
    case "insertCell":
      return String(message.source);
    case "answer":
      return [message.key, message.value].every((word) => WORD.test(word))
        ? `%dtdebug answer ${message.key} ${message.value}`
        : undefined;
    default:
      return undefined;
  }
}

/** As a new cell that is not run: the user reads it first. */
async function insertBelow(editor: vscode.NotebookEditor, source: string): Promise<void> {
  const cell = new vscode.NotebookCellData(vscode.NotebookCellKind.Code, source, "python");
  const edit = new vscode.WorkspaceEdit();
  edit.set(editor.notebook.uri, [vscode.NotebookEdit.insertCells(editor.selection.end, [cell])]);
  await vscode.workspace.applyEdit(edit);
}
