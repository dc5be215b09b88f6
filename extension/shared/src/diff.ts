/** A diff in colour, and the code that it leads to. */

import { type Actions, copyText } from "./actions.js";
import { attempt, button, make, status } from "./dom.js";
import { trans } from "./trans.js";

const MOST_LINES = 120;

export interface Line {
  readonly kind: "added" | "removed" | "kept" | "head" | "gap";
  readonly text: string;
}

/** The lines of a unified diff, or of its short form without heads. */
export function lines(diff: string): Line[] {
  const all = diff.replace(/\n$/, "").split("\n");
  return all.map((text, i) => {
    const isHead =
      (text.startsWith("--- ") && (all[i + 1] ?? "").startsWith("+++ ")) ||
      (text.startsWith("+++ ") && (all[i - 1] ?? "").startsWith("--- "));
    const kind = isHead
      ? "head"
      : text.startsWith("@@ ")
        ? "gap"
        : text.startsWith("+")
          ? "added"
          : text.startsWith("-")
            ? "removed"
            : "kept";
    return { kind, text };
  });
}

/** What is shown: without the names of files, and with a sign only where lines are left out in between. */
function visible(diff: string): Line[] {
  const named = lines(diff).filter((line) => line.kind !== "head");
  return named.filter((line, i) => line.kind !== "gap" || i > 0);
}

/** What the code looks like after the change. */
export function after(diff: string): string {
  return visible(diff)
    .filter((line) => line.kind !== "removed")
    .map((line) => (line.kind === "gap" ? "" : line.text.slice(1)))
    .join("\n");
}

/** The diff with its buttons; null if there is none. Only Python that parses can become a cell. */
export function diffView(diff: string, title: string, host: Actions, inPython: boolean): HTMLElement | null {
  if (diff.trim() === "") {
    return null;
  }
  const all = visible(diff);
  const code = make("code", "", ...all.slice(0, MOST_LINES).map(row));
  const box = make("pre", "dtd-diff", code);
  box.tabIndex = 0; // so that the keyboard can scroll it
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", trans.__("Change that fixes it: %1", title));
  if (all.length > MOST_LINES) {
    const more = trans._n("… %1 more line", "… %1 more lines", all.length - MOST_LINES);
    box.append(make("div", "dtd-line dtd-gap", more));
  }
  return make("div", "dtd-change", box, tools(diff, title, host, inPython));
}

function row(line: Line): HTMLElement {
  const tag = line.kind === "added" ? "ins" : line.kind === "removed" ? "del" : "span";
  return make(tag, `dtd-line dtd-${line.kind}`, line.kind === "gap" ? "⋯" : line.text || " ", "\n");
}

function tools(diff: string, title: string, host: Actions, inPython: boolean): HTMLElement {
  const told = status();
  const source = after(diff);
  const copy = button(
    trans.__("Copy"),
    () =>
      void attempt(
        () => copyText(source, host),
        told,
        trans.__("Copied."),
        trans.__("Copying is not allowed here: select the text."),
      ),
    trans.__("Copy the code with the fix: %1", title),
  );
  const insert = inPython && host.insertCell?.bind(host);
  const below =
    insert &&
    button(
      trans.__("Insert as new cell below"),
      () =>
        void attempt(
          () => insert(`# ${trans.__("An example from dtdebug: adapt it before you run it.")}\n${source}\n`),
          told,
          trans.__("Inserted below."),
          trans.__("No cell could be inserted."),
        ),
      trans.__("Insert the code with the fix as a new cell below: %1", title),
    );
  return make("div", "dtd-tools", copy, below || null, told);
}
