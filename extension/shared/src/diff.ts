/** A diff in colour, and the code that it leads to. */

import { type Actions, copyText } from "./actions.js";
import { attempt, button, make, status } from "./dom.js";
import { trans } from "./trans.js";

const MOST_LINES = 120;
const MOST_CHANGED = 4;

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

/** The diffs of the single cells or files that a diff is of. */
export function parts(diff: string): string[] {
  const all = lines(diff);
  const begins = all.flatMap(({ kind, text }, i) => (kind === "head" && text.startsWith("--- ") ? [i] : []));
  return [0, ...begins.slice(1)].map((begin, i) =>
    all
      .slice(begin, begins[i + 1])
      .map(({ text }) => `${text}\n`)
      .join(""),
  );
}

/** What is shown: the name only of several cells, and a sign only where lines are left out in between. */
function visible(diff: string): Line[] {
  const all = parts(diff);
  return all.flatMap((part) => {
    const rows = lines(part);
    const names = rows.filter(({ kind, text }) => all.length > 1 && kind === "head" && text.startsWith("+++ "));
    const body = rows.filter(({ kind }) => kind !== "head");
    return [
      ...names.map(({ kind, text }) => ({ kind, text: `# ${text.slice(4).replace(/^b\//, "")}` })),
      ...body.filter(({ kind }, i) => kind !== "gap" || i > 0),
    ];
  });
}

/** What the code looks like after the change. */
export function after(diff: string): string {
  return visible(diff)
    .filter((line) => line.kind !== "removed")
    .map(({ kind, text }) => (kind === "gap" ? "" : kind === "head" ? text : text.slice(1)))
    .join("\n");
}

/**
 * The source with a unified diff applied, as `patch` without fuzz: each line that is kept or taken away stands where the
 * diff says, or all of them lower, below the leading empty lines of a cell, which IPython drops, or its `%%writefile`.
 * Null if one does not.
 */
export function patched(diff: string, source: string): string | null {
  const rows = source.split("\n");
  const empty = Math.max(rows.findIndex((row) => row.trim() !== ""), 0);
  const shifts = [0, empty, ...(rows[empty]?.startsWith("%%writefile ") ? [empty + 1] : [])];
  return shifts.map((shift) => shifted(diff, rows, shift)).find((text) => text !== null) ?? null;
}

function shifted(diff: string, source: readonly string[], shift: number): string | null {
  const out: string[] = [];
  let [at, isWithin, changes] = [0, false, 0];
  for (const { kind, text } of lines(diff)) {
    if (kind === "gap") {
      const [, line, count] = /^@@ -(\d{1,9})(?:,(\d{1,9}))? /.exec(text) ?? [];
      const begin = Number(line) + (count === "0" ? 0 : -1) + shift; // of an empty side the line before is given
      if (!(begin >= at && begin <= source.length)) {
        return null;
      }
      out.push(...source.slice(at, begin));
      [at, isWithin] = [begin, true];
    } else if (kind === "added" && isWithin) {
      out.push(text.slice(1));
      changes++;
    } else if (kind === "removed" || (kind === "kept" && !text.startsWith("\\"))) {
      if (!isWithin || source[at] !== text.slice(1)) {
        return null;
      }
      if (kind === "kept") {
        out.push(text.slice(1));
      }
      changes += Number(kind === "removed");
      at++;
    }
  }
  return changes ? [...out, ...source.slice(at)].join("\n") : null;
}

/** A diff of the reader's own code with its buttons; null if there is none. */
export function diffView(diff: string, title: string, host: Actions): HTMLElement | null {
  const box = diffBox(visible(diff), MOST_LINES, title);
  return box && make("div", "dtd-change", box, diffTools(diff, title, host));
}

/** A line of code of which a part is marked. */
interface Marked {
  readonly code: string;
  readonly mark: readonly [number, number];
}

/** The line with its mark. */
export function marked(code: string, [begin, end]: readonly [number, number]): (Node | string)[] {
  return end > begin && begin < code.length
    ? [code.slice(0, begin), make("mark", "dtd-marked", code.slice(begin, end)), code.slice(end)]
    : [code];
}

/** The lines that a diff changes, below the names of several cells; `blamed` keeps its mark. */
export function changedLines(diff: string, title: string, blamed?: Marked): HTMLElement | null {
  const changed = visible(diff).filter(({ kind }) => kind !== "kept" && kind !== "gap");
  const names = changed.filter(({ kind }) => kind === "head").length;
  const box = diffBox(changed, MOST_CHANGED + names, title, blamed);
  return box && make("div", "dtd-change", box);
}

/** The code of the lines that a diff takes away. */
export function removedLines(diff: string): string[] {
  return visible(diff).filter(({ kind }) => kind === "removed").map(({ text }) => text.slice(1).trim());
}

function diffBox(all: readonly Line[], most: number, title: string, blamed?: Marked): HTMLElement | null {
  if (all.every(({ text }) => text.trim() === "")) {
    return null;
  }
  const box = make("pre", "dtd-diff", make("code", "", ...all.slice(0, most).map((line) => row(line, blamed))));
  box.tabIndex = 0; // so that the keyboard can scroll it
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", trans.__("Change that fixes it: %1", title));
  if (all.length > most) {
    const more = trans._n("… %1 more line", "… %1 more lines", all.length - most);
    box.append(make("div", "dtd-line dtd-gap", more));
  }
  return box;
}

function row({ kind, text }: Line, blamed?: Marked): HTMLElement {
  const tag = kind === "added" ? "ins" : kind === "removed" ? "del" : "span";
  const at = kind === "removed" && blamed && text.slice(1).trim() === blamed.code ? text.indexOf(blamed.code) : -1;
  const parts = blamed && at >= 0 ? [text.slice(0, at), ...marked(blamed.code, blamed.mark)] : [text || " "];
  return make(tag, `dtd-line dtd-${kind}`, ...(kind === "gap" ? ["⋯"] : parts), "\n");
}

/** Puts the change into the code that it is of. */
export function diffTools(diff: string, title: string, host: Actions): HTMLElement {
  const told = status();
  const fit = host.fits?.(diff);
  const apply =
    fit &&
    button(
      trans.__("Apply to %1", fit.where),
      () =>
        void attempt(
          () => (host.fits?.(diff) ?? refuse()).apply(), // the code may have changed since
          told,
          trans.__("Applied to %1: run it again.", fit.where),
          trans.__("The code has changed since: make the change by hand."),
        ),
      trans.__("Apply to %1: %2", fit.where, title),
    );
  return make("div", "dtd-tools", apply || null, copyButton(after(diff), title, host, told), told);
}

function refuse(): never {
  throw new Error("it fits nowhere any more");
}

function copyButton(source: string, title: string, host: Actions, told: HTMLElement): HTMLElement {
  return button(
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
}
