/** The short answer: what happened, the reader's own lines, why, the change, and the next step. */

import type { Actions } from "./actions.js";
import type { Answer, Fix, Spot, Step } from "./diagnosis.js";
import { changedLines, diffTools, marked, removedLines } from "./diff.js";
import { attempt, button, make, status } from "./dom.js";
import { placeName } from "./ranks/words.js";
import type { Filled } from "./read.js";
import { trans } from "./trans.js";
import { prose } from "./words.js";

const MOST_PLACES = 3;

/** The answer in the few lines that every front end shows; `more` opens the rest, `guide` goes on beside the notebook. */
export function shortView(a: Filled<Answer>, host: Actions, more: HTMLElement, guide: HTMLElement | null): HTMLElement {
  const sure = sureWord(a);
  const removed = a.fix ? removedLines(a.fix.diff) : [];
  const changed = a.spots.find((s) => s.code && removed.includes(s.code)); // the diff shows this line
  const places = a.spots.slice(0, MOST_PLACES).map((s) => placeView(s === changed ? { ...s, code: "" } : s, host));
  return make(
    "div",
    "dtd-short",
    make("p", "dtd-lead", make("span", "dtd-brand", "dtdebug"), " ", make("span", "dtd-title", ...prose(a.headline))),
    a.event && !a.fix?.diff ? make("p", "dtd-event", a.event) : null,
    places.length ? make("div", "dtd-places", ...places) : null,
    a.why || a.record ? line("dtd-reason", a.sure === "possible" ? trans.__("Maybe") : trans.__("Why"), a.why, a.record) : null,
    a.guess ? line("dtd-reason", trans.__("Maybe"), a.guess) : null,
    a.fix ? fixView(a.fix, a.headline, changed) : null,
    a.next ? stepView(a.next, host) : null,
    make("div", "dtd-row", a.fix?.diff ? diffTools(a.fix.diff, a.headline, host) : null, more, guide, sure ? make("span", `dtd-chip dtd-is-${a.sure}`, sure) : null),
  );
}

function line(name: string, label: string, said: string, record = ""): HTMLElement {
  return make("p", name, make("strong", "", label), " ", ...prose(said), record ? make("span", "dtd-soft", ` ${record}`) : null);
}

/** The ranks that stand there, the place, and the line of code with what is marked in it. */
function placeView(s: Filled<Spot>, host: Actions): HTMLElement {
  const at = s.file.startsWith("cell ") ? `${s.file}, line ${s.line}` : `${s.file.split("/").pop() ?? ""}${s.line ? `:${s.line}` : ""}`;
  const who = s.ranks.length ? trans._n("rank %2", "ranks %2", s.ranks.length, ranges(s.ranks)) : "";
  const values = s.values.map(([name, text]) => (text ? `${name} = ${text}` : name)).join(", ");
  return make(
    "div",
    "dtd-spot",
    make("div", "dtd-soft", who ? make("span", "dtd-who", who) : null, who && at ? " · " : null, where(at, host), s.state ? ` · ${s.state}` : null, values ? " · " : null, values ? make("code", "", values) : null),
    s.code ? make("pre", "dtd-source", make("code", "", ...marked(s.code, s.mark))) : null,
  );
}

function where(at: string, host: Actions): HTMLElement | string {
  const open = host.openPlace?.bind(host);
  if (!open || !at.startsWith("cell ")) {
    return placeName(at);
  }
  const link = button(placeName(at), () => void attempt(() => open(at), status(), "", ""));
  link.classList.add("dtd-link");
  return link;
}

/** `0-3, 5` */
function ranges(ranks: readonly number[]): string {
  const parts: [number, number][] = [];
  for (const rank of ranks) {
    const last = parts.at(-1);
    if (last && last[1] + 1 === rank) {
      last[1] = rank;
    } else {
      parts.push([rank, rank]);
    }
  }
  return parts.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(", ");
}

function fixView(f: Filled<Fix>, title: string, changed: Filled<Spot> | undefined): HTMLElement {
  return make("div", f.diff ? "dtd-fix dtd-with-diff" : "dtd-fix", line("", trans.__("Fix"), f.text), changedLines(f.diff, title, changed));
}

function stepView(s: Filled<Step>, host: Actions): HTMLElement {
  const command = s.command ? make("pre", "dtd-command", s.command) : null;
  command?.setAttribute("tabindex", "0"); // a long one scrolls, by the keyboard too
  const insert = host.insert?.bind(host);
  const measure = insert && s.command.startsWith("%dtdebug ") ? button(trans.__("Insert %1 as a cell", s.command), () => insert(s.command)) : null;
  return make("div", "dtd-next", line("", trans.__("Next"), s.text), command, measure);
}

/** How sure the cause is; over a fix that nothing proves, of the cause alone. */
export function sureWord(a: Filled<Answer>): string {
  if (a.fix?.tried) {
    return `${a.fix.proven ? trans.__("proven") : trans.__("not proven")}: ${a.fix.tried}`;
  }
  switch (a.sure) {
    case "certain":
      return a.fix === null || a.fix.proven ? trans.__("certain") : trans.__("the cause is certain, the fix is not proven");
    case "likely":
      return trans.__("likely");
    case "possible":
      return trans.__("possible");
    case "own":
      return trans.__("raised by the program itself");
    case "place":
      return trans.__("rank and line are certain, the cause is not known");
    case "stated":
      return trans.__("the message says it");
    case "unknown":
      return trans.__("cause not known");
    default:
      return "";
  }
}
