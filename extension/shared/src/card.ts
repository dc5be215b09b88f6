/** The card: what was seen, why, what to change, what to answer next. */

import type { Actions } from "./actions.js";
import type { Answer, Explanation, Next, RankedSymptom, Reason, Seen } from "./diagnosis.js";
import { diffView } from "./diff.js";
import { attempt, button, make, part, status } from "./dom.js";
import { questionView } from "./question.js";
import { type Filled, type Shown, Unreadable, VERSION, read } from "./read.js";
import { shortView } from "./short.js";
import { STYLE } from "./style.js";
import { trans } from "./trans.js";
import { bandWord, guessed, later, notKnown, notPointedAt, place, prose, sentence, verdictWord } from "./words.js";

/** What of a card stands elsewhere. */
export interface Shape {
  /** The question, and how to go on. */
  readonly asksElsewhere?: boolean;
  readonly folded?: boolean;
  /** All that is known is open below the short answer. */
  readonly isOpen?: boolean;
}

/** Shows a diagnosis, whatever the data is: as a card, or as one line that says why not. Never throws. */
export function render(data: unknown, host: Actions = {}, shape: Shape = {}): HTMLElement {
  try {
    return card(read(data), host, shape);
  } catch (error) {
    const why = error instanceof Unreadable ? error.message : trans.__("this output can't be read");
    const line = trans.__("dtdebug: %1; %2 shows the last one again.", why, "%dtdebug");
    return make("div", "dtd", style(), make("p", "dtd-problem", line));
  }
}

/** Puts the keyboard into a card: at what opens the rest. */
export function focusCard(within: ParentNode): void {
  const at = within.querySelector<HTMLElement>(".dtd-open") ?? within.querySelector<HTMLElement>("summary, button");
  at?.focus();
}

function card(d: Shown, host: Actions, shape: Shape): HTMLElement {
  const named = leading(d);
  const shown = d.answer ? short(d, d.answer, named, host, shape) : long(d, named, host, shape);
  const root = make("div", `dtd dtd-${named[0]?.band || "unlikely"}`, style(), shown);
  root.setAttribute("role", "region");
  const first = d.answer?.headline || d.ordinary || d.happened;
  const name = first || named.map((s) => s.title).join(` ${trans.__("or")} `) || notKnown();
  root.setAttribute("aria-label", `dtdebug: ${name}`);
  return root;
}

/** The short answer, and below a button all that is known. */
function short(d: Shown, answer: Filled<Answer>, named: readonly Filled<RankedSymptom>[], host: Actions, shape: Shape): HTMLElement {
  const rest = make("div", "dtd-body", ...body(d, named, host, shape));
  rest.hidden = !shape.isOpen;
  const more = button(trans.__("Why?"), () => {
    rest.hidden = !rest.hidden;
    more.setAttribute("aria-expanded", String(!rest.hidden));
  });
  more.setAttribute("aria-expanded", String(!rest.hidden));
  more.classList.add("dtd-open");
  return make("div", "dtd-card", shortView(answer, host, more, shape.asksElsewhere ? null : guide(host)), rest);
}

/** What notebooks hold that an older dtdebug has written. */
function long(d: Shown, named: readonly Filled<RankedSymptom>[], host: Actions, shape: Shape): HTMLElement {
  const folded = make(
    "details",
    "dtd-card",
    make("summary", "dtd-summary", make("span", "", make("span", "dtd-brand", "dtdebug"), " ", headline(d))),
    make("div", "dtd-body", ...body(d, named, host, shape)),
  );
  folded.open = !shape.folded;
  return folded;
}

/** Each card brings its style, so that it looks the same wherever it is put. */
function style(): HTMLElement {
  return make("style", "", STYLE);
}

/** The symptoms that the verdict names. */
function leading(d: Shown): readonly Filled<RankedSymptom>[] {
  return d.verdict === "unknown" || d.ordinary ? [] : d.symptoms.slice(0, d.verdict === "apart" ? 2 : 1);
}

/** What happened, in one line; it stays when the card is folded. */
export function headline(d: Shown): HTMLElement {
  const first = d.answer?.headline || d.ordinary || d.happened;
  if (first === "") {
    return symptomLine(d);
  }
  const subtitle = leading(d).length && !d.answer ? [" ", symptomLine(d, "dtd-symptom")] : [];
  return make("span", "dtd-headline", make("span", "dtd-title", first), ...subtitle);
}

/** The class of the symptom: a subtitle where something is known of what happened. */
function symptomLine(d: Shown, name = "dtd-headline"): HTMLElement {
  const named = leading(d);
  const titles = named.flatMap((s, i) => [
    i ? make("span", "dtd-or", ` ${trans.__("or")} `) : null,
    make("span", "dtd-title", s.title),
    " ",
    s.code ? make("code", "dtd-code", s.code) : null,
  ]);
  const band = d.verdict === "apart" ? "" : (named[0]?.band ?? "");
  return make(
    "span",
    name,
    ...(named.length ? titles : [make("span", "dtd-title", notKnown())]),
    ...chip(bandWord(band), `dtd-is-${band}`),
    ...chip(verdictWord(d.verdict), `dtd-is-${d.verdict}`),
  );
}

function* body(
  d: Shown,
  named: readonly Filled<RankedSymptom>[],
  host: Actions,
  shape: Shape,
): Generator<HTMLElement | null> {
  const told = sentence(d);
  yield d.answer?.event && d.answer.fix?.diff ? make("p", "dtd-told", d.answer.event) : null; // for which there was no room
  yield d.answer && named.length ? symptomLine(d, "dtd-symptom") : null;
  if (d.v > VERSION) {
    yield make("p", "dtd-soft", trans.__("A newer dtdebug wrote this (form %1): some of it may be missing here.", d.v));
  }
  yield part("dtd-seen-list", trans.__("Seen"), d.seen.length ? claims(d.seen) : null);
  yield told && !(d.happened && d.verdict === "echo") ? make("p", "dtd-told", told) : null;
  yield d.culprits.length && !d.happened ? culprits(d.culprits) : null;
  for (const s of named) {
    const why = s.why.filter((r) => r.means !== d.happened); // which the first line says
    yield part("dtd-because", named.length > 1 ? whyOf(s) : trans.__("Why"), why.length ? reasons(why) : null);
  }
  const others = d.ordinary ? [] : d.symptoms.filter((s) => !named.includes(s) && (!named.length || s.band !== "unlikely")).slice(0, 3);
  yield others.length ? alternatives(others, named.length > 0) : null;
  const question = d.question && !shape.asksElsewhere ? questionView(d.question, host) : null;
  const causes = d.advice.slice(0, 3).map((a, i) => cause(a, i === 0, host));
  yield causes.length || d.ordinary ? null : make("p", "dtd-told", notPointedAt());
  const guesses = part("dtd-causes", guessed(), ...d.guesses.map((a) => cause(a, false, host)));
  const advice = part("dtd-causes", trans.__("What may cause it"), ...causes) ?? guesses;
  yield d.next?.kind === "measure" ? nextStep(d.next) : null;
  yield* d.verdict === "apart" ? [question, advice] : [advice, question]; // where an answer tells more, it comes first
  for (const note of d.notes) {
    yield make("p", "dtd-soft", trans.__("Note: %1", note));
  }
  for (const other of d.later) {
    yield make("div", "dtd-later", make("p", "dtd-told", later()), headline(other), ...other.advice.slice(0, 1).map((a) => cause(a, false, host)));
  }
  yield shape.asksElsewhere ? null : foot(d, host);
}

/** What supports the first line, each with the record that it rests on. */
function claims(all: readonly Filled<Seen>[]): HTMLElement {
  const rows = all.slice(0, 4).map((s) => make("li", "", s.text, s.record ? make("div", "dtd-seen", s.record) : null));
  return make("ul", "dtd-reasons", ...rows);
}

function whyOf({ code, title, band }: Filled<RankedSymptom>): string {
  return band ? trans.__("Why %1 (%2)", code || title, bandWord(band)) : trans.__("Why %1", code || title);
}

function culprits(ranks: readonly number[]): HTMLElement {
  const told = trans._n("First seen on rank %2.", "First seen on ranks %2.", ranks.length, ranks.join(", "));
  return make("p", "dtd-culprits", make("strong", "", told));
}

function reasons(all: readonly Filled<Reason>[]): HTMLElement {
  return make(
    "ul",
    "dtd-reasons",
    ...all.slice(0, 3).map((r) => make("li", r.weight > 0 ? "" : "dtd-against", ...reason(r))),
  );
}

/** What a finding means; below it where it was seen, and in which words. */
function* reason(r: Filled<Reason>): Generator<Node | string> {
  if (r.weight <= 0) {
    yield make("em", "", trans.__("against it:"));
    yield " ";
  }
  yield* prose(r.means);
  const seen = place(r);
  if (seen || r.words) {
    yield make("div", "dtd-seen", seen, r.words ? make("q", "dtd-words", r.words) : null);
  }
}

function alternatives(symptoms: readonly Filled<RankedSymptom>[], isKnown: boolean): HTMLElement {
  const titles = symptoms.map((s) => (s.code ? `${s.title} (${s.code})` : s.title)).join("; ");
  const told = isKnown ? trans.__("Also possible: %1.", titles) : trans.__("Nearest so far: %1.", titles);
  return make("p", "dtd-soft", told);
}

function cause(a: Filled<Explanation>, isFirst: boolean, host: Actions): HTMLElement {
  const time = a.minutes ? trans.__("about %1 min", a.minutes) : "";
  const costs = [bandWord(a.band), a.pattern, time].filter(Boolean).join(" · ");
  const because = a.because.slice(0, 2).map((r) => make("li", "", ...reason(r)));
  const entry = make(
    "details",
    "dtd-cause",
    make("summary", "", make("span", "", make("span", "dtd-cause-title", a.title), make("span", "dtd-costs", costs))),
    a.why ? make("p", "", ...prose(a.why)) : null,
    because.length ? make("ul", "dtd-reasons", ...because) : null,
    a.fix ? make("p", "dtd-fix", make("strong", "", trans.__("Fix:")), " ", ...prose(a.fix)) : null,
    a.diff_of === "yours" ? diffView(a.diff, a.title, host) : null,
    feedback(
      trans.__("This was it"),
      trans.__("This was it: %1", a.title),
      { helped: true, symptom: a.symptom, cause: a.cause },
      host,
    ),
  );
  entry.open = isFirst;
  return entry;
}

/** The one thing to do next, with its command and what that would say. */
function nextStep(n: Filled<Next>): HTMLElement {
  return make(
    "div",
    "dtd-next",
    make("p", "", make("strong", "", trans.__("Next:")), " ", ...prose(n.text)),
    n.command ? make("pre", "dtd-command", n.command) : null,
    n.why ? make("p", "dtd-soft", ...prose(n.why)) : null,
  );
}

function foot(d: Shown, host: Actions): HTMLElement {
  const said = { helped: false, symptom: d.symptoms[0]?.code ?? "", cause: "" };
  const line = trans.__("`%1` goes on from here; `%2` keeps quiet.", "%dtdebug", "%dtdebug off");
  const word = feedback(trans.__("Not helpful"), trans.__("Not helpful: this diagnosis"), said, host);
  return make(
    "div",
    "dtd-foot",
    make("span", "dtd-soft", ...prose(line)),
    make("span", "dtd-end", d.answer ? null : guide(host), word),
  );
}

/** A button that goes on beside the notebook; null where there is no such place. */
function guide(host: Actions): HTMLElement | null {
  const open = host.guide?.bind(host);
  return open
    ? button(trans.__("Guide me"), () => open(), trans.__("Guide me step by step beside the notebook"))
    : null;
}

/** A button that gives the reader's word to the host once; null where nobody asks for it. */
function feedback(
  label: string,
  description: string,
  about: Parameters<NonNullable<Actions["feedback"]>>[0],
  host: Actions,
): HTMLElement | null {
  const give = host.feedback?.bind(host);
  if (!give) {
    return null;
  }
  const told = status();
  const press = button(
    label,
    () => {
      press.disabled = true;
      const [done, failed] = [trans.__("Thank you."), trans.__("That could not be kept.")];
      void attempt(() => give(about), told, done, failed).then((kept) => {
        press.disabled = kept;
      });
    },
    description,
  );
  press.classList.add("dtd-quiet");
  return make("div", "dtd-feedback", press, told);
}

function chip(text: string, name: string): (Node | string)[] {
  return text ? [" ", make("span", `dtd-chip ${name}`, text)] : [];
}
