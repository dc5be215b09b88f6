/** A small DOM in place of a browser's. */

import { readFileSync, readdirSync } from "node:fs";

import { parseHTML } from "linkedom";

const { document } = parseHTML("<!doctype html><html><body></body></html>");
Object.assign(globalThis, { document });

export const SAMPLES = new URL("../../test/samples/", import.meta.url);

export const names: string[] = readdirSync(SAMPLES)
  .filter((name) => name.endsWith(".json"))
  .map((name) => name.slice(0, -".json".length));

export function sample(name: string): Record<string, unknown> {
  return JSON.parse(readFileSync(new URL(`${name}.json`, SAMPLES), "utf8")) as Record<string, unknown>;
}

export function html(name: string): Element {
  const page = parseHTML(`<html><body>${readFileSync(new URL(`${name}.html`, SAMPLES), "utf8")}</body></html>`);
  return page.document.body;
}

/** What a reader can see or unfold, without the style. */
export function shown(root: Element): string {
  return [...root.children]
    .filter((each) => each.tagName !== "STYLE")
    .flatMap(texts)
    .join(" ");
}

function texts(node: Node): string[] {
  return node.nodeType === 3 ? [node.textContent ?? ""] : [...node.childNodes].flatMap(texts);
}

export function buttons(root: Element): HTMLButtonElement[] {
  return [...root.querySelectorAll<HTMLButtonElement>("button")];
}

export function named(root: Element, label: string): HTMLButtonElement {
  const found = buttons(root).find((each) => each.textContent === label);
  if (!found) {
    throw new Error(`no button "${label}" among: ${buttons(root).map((each) => each.textContent)}`);
  }
  return found;
}

/** Lets what a click began come to its end. */
export async function settle(): Promise<void> {
  await new Promise((done) => setTimeout(done, 0));
}
