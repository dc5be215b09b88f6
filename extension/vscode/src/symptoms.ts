/** Explains a symptom: the server's Markdown in a preview. */

import * as vscode from "vscode";
import type { Server } from "./server";

/** What `dtdebug.symptoms` answers for each symptom. */
export interface Symptom {
  code: string;
  title: string;
  stage?: string;
}

const SCHEME = "dtdebug";

export class Explanations implements vscode.TextDocumentContentProvider {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  register(): vscode.Disposable {
    return vscode.Disposable.from(
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      this.changed,
    );
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.path) ?? "This page is not kept: run **dtdebug: Explain symptom...** again.";
  }

  async show(name: string, markdown: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${name}.md` });
    this.texts.set(uri.path, markdown);
    this.changed.fire(uri);
    await vscode.commands.executeCommand("markdown.showPreviewToSide", uri);
  }
}

/** Asks for one of all symptoms that the server knows, by code or by words of its title. */
export async function explainSymptom(server: Server, explanations: Explanations): Promise<void> {
  const symptoms = await server.ask<Symptom[]>("dtdebug.symptoms");
  if (!symptoms) {
    return;
  }
  const items = symptoms.map(({ code, title, stage }) => ({
    label: code,
    description: title,
    ...(stage && { detail: stage }),
  }));
  const chosen = await vscode.window.showQuickPick(items, {
    placeHolder: "Code or words: D.2.1, hang, out of memory",
    matchOnDescription: true,
    matchOnDetail: true,
  });
  if (chosen) {
    const markdown = await server.ask<string>("dtdebug.explain", chosen.label);
    if (markdown) {
      await explanations.show(chosen.label, markdown);
    }
  }
}
