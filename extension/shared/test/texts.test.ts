import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import ts from "typescript";

/** The sources of which JupyterLab's page is made; `trans.ts` is where the calls lead to. */
const FOLDERS = ["../../src/", "../../../jupyterlab/src/"].map((folder) => new URL(folder, import.meta.url));
const SOURCES = FOLDERS.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && name !== "trans.ts")
    .map((name) => ts.createSourceFile(name, readFileSync(new URL(name, folder), "utf8"), ts.ScriptTarget.Latest, true)),
);

/** What jupyterlab-translate takes for a translation. */
const CALLED = ["trans", "this.trans"].flatMap((whose) => [`${whose}.__`, `${whose}._n`]);
const FORMS = ["__", "_n"];

/** Functions of which what they are given is shown, and properties that are shown. */
const SHOWS = new Set(["make", "button", "part", "fold", "folding", "main", "quiet", "step", "form", "setText", "Lines", "Section"]);
const SHOWN = new Set(["title", "textContent", "placeholder", "label", "caption"]);

function* nodes(node: ts.Node): Generator<ts.Node> {
  yield node;
  for (const child of node.getChildren()) {
    yield* nodes(child);
  }
}

const ALL = SOURCES.flatMap((source) => [...nodes(source)]);

function where(node: ts.Node): string {
  const source = node.getSourceFile();
  return `${source.fileName}:${source.getLineAndCharacterOfPosition(node.getStart()).line + 1}: ${node.getText()}`;
}

/** 1 for a text, 2 for a text with its plural, 0 for any other call. */
function forms(node: ts.Node): number {
  const callee = ts.isCallExpression(node) ? node.expression : null;
  return callee && ts.isPropertyAccessExpression(callee) ? FORMS.indexOf(callee.name.text) + 1 : 0;
}

const CALLS = ALL.filter(ts.isCallExpression).filter((node) => forms(node) > 0);

/** The text of a literal, which may be in pieces; null for all else. */
function literal(node: ts.Expression): string | null {
  if (ts.isStringLiteral(node)) {
    return node.text;
  }
  if (!ts.isBinaryExpression(node) || node.operatorToken.kind !== ts.SyntaxKind.PlusToken) {
    return null;
  }
  const [left, right] = [literal(node.left), literal(node.right)];
  return left === null || right === null ? null : left + right;
}

/** What a node gives to be shown. */
function given(node: ts.Node): readonly ts.Expression[] {
  if ((ts.isCallExpression(node) || ts.isNewExpression(node)) && SHOWS.has(node.expression.getText())) {
    const all = node.arguments ?? [];
    const tag = node.expression.getText() === "make" && all[0] ? literal(all[0]) : null;
    return tag === null ? all : ["code", "style"].includes(tag) ? [] : all.slice(2);
  }
  if (ts.isBinaryExpression(node) && ts.isPropertyAccessExpression(node.left)) {
    return SHOWN.has(node.left.name.text) ? [node.right] : [];
  }
  return [];
}

/** Words in literals of an expression that no translation has; names of classes begin as our own name does. */
function* bare(node: ts.Node): Generator<string> {
  if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)) {
    yield* /\p{L}{2}/u.test(node.text) && !/^%?dtd/.test(node.text) ? [node.text] : [];
  } else if (!ts.isCallExpression(node) && !ts.isFunctionLike(node) && !isComparison(node)) {
    for (const child of node.getChildren()) {
      yield* bare(child);
    }
  }
}

function isComparison(node: ts.Node): boolean {
  return ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.EqualsEqualsEqualsToken;
}

test("translators are given every text: each is a literal, in a call of a name that is looked for", () => {
  assert.ok(CALLS.length > 200, String(CALLS.length));
  assert.deepEqual(
    [],
    CALLS.filter((node) => {
      const texts = node.arguments.slice(0, forms(node)).map(literal);
      return !CALLED.includes(node.expression.getText()) || texts.includes(null);
    }).map(where),
  );
});

test("no text is said both with a count and without one: a catalogue holds one form", () => {
  const found = new Map<string, number>();

  for (const node of CALLS) {
    const text = literal(node.arguments[0]!) ?? "";
    assert.equal(found.get(text) ?? forms(node), forms(node), where(node));
    found.set(text, forms(node));
  }
});

test("what is put into the page is no literal of its own", () => {
  const all = ALL.flatMap((node) => given(node).map((each) => [node, [...bare(each)]] as const));

  assert.ok(all.length > 200, String(all.length));
  assert.deepEqual([], all.filter(([, texts]) => texts.length > 0).map(([node, texts]) => `${texts}: ${where(node)}`));
});
