/** What the wizard shows, as elements. */

import type { CodeCell } from "@jupyterlab/cells";
import type { NotebookPanel } from "@jupyterlab/notebook";

import type { Actions } from "../../shared/src/actions.js";
import { render } from "../../shared/src/card.js";
import { type Child, attempt, button, make, status } from "../../shared/src/dom.js";
import { questionView } from "../../shared/src/question.js";
import type { Shown } from "../../shared/src/read.js";
import { ENGLISH, type Trans } from "../../shared/src/trans.js";
import { origin, prose } from "../../shared/src/words.js";
import type { Line } from "./ask.js";
import { readable } from "./entries.js";
import type { Means } from "./means.js";
import { lastFailed, numberOf } from "./place.js";
import type { Answer } from "./requests.js";
import type { Course } from "./steps.js";

/** All that the view goes by. */
export interface Seen {
  readonly panel: NotebookPanel | null;
  readonly course: Course | null;
  readonly answer: Answer | null;
  readonly line: Line | null;
  /** What has run since the wizard began. */
  readonly since: { readonly cell: CodeCell; readonly ran: boolean } | null;
}

/** All that its buttons do. */
export interface Act {
  /** One for all drawings, so that none takes away what is being written. */
  readonly field: HTMLTextAreaElement;
  start(cell: CodeCell): void;
  tell(text: string): Promise<void>;
  again(): void;
  reset(): void;
  back(): Promise<void>;
  reveal(): void;
  insert(source: string): void;
  actions(): Actions;
}

/** Before anything is asked: which failure, or what is seen. */
export function startView(seen: Seen, act: Act, means: Means): Child[] {
  const { trans } = means;
  const failed = seen.panel && lastFailed(seen.panel.content);
  const guide = failed && main(trans.__("Guide me from cell %1", numberOf(failed)), () => act.start(failed));
  return [
    lineView(seen, act, means),
    make("p", "dtdp-lead", trans.__("A few questions, then the cause and the change that fixes it.")),
    guide && make("div", "dtdp-row", guide),
    seen.panel && !failed ? make("p", "dtd-soft", trans.__("No cell of this notebook shows an error.")) : null,
    failed ? null : examples(act, means),
    form(failed ? trans.__("Or say what you see") : trans.__("What do you see?"), trans.__("Ask"), act, means),
  ];
}

/** On the way, and at its end. */
export function courseView(seen: Seen, act: Act, means: Means): Child[] {
  return [top(seen, act, means), since(seen, act, means), lineView(seen, act, means), ...said(seen, act, means)];
}

/** Which failure it is about. */
function top({ course }: Seen, act: Act, { trans }: Means): HTMLElement {
  const subject = course?.subject;
  const name = subject ? trans.__("Cell %1", subject.number) : trans.__("What you said");
  return make(
    "div",
    "dtdp-top",
    subject ? quiet(name, act.reveal, trans.__("Show cell %1 in the notebook", subject.number)) : make("span", "dtd-soft", name),
    subject?.ename ? make("code", "dtdp-ename", subject.ename) : null,
    quiet(trans.__("Start over"), act.reset),
  );
}

/** What ran since: the proof of a fix, or a newer failure. */
function since({ since, course }: Seen, act: Act, { trans }: Means): HTMLElement | null {
  if (!since || since.cell.isDisposed) {
    return null;
  }
  const number = numberOf(since.cell);
  if (since.ran) {
    return make("p", "dtdp-since dtdp-ran", trans.__("Cell %1 has run without an error since.", number));
  }
  const isSame = since.cell.model.id === course?.subject?.id;
  const told = isSame ? trans.__("Cell %1 has failed again.", number) : trans.__("Cell %1 has failed since.", number);
  return make("div", "dtdp-since dtdp-row", make("span", "", told), button(trans.__("Guide me from there"), () => act.start(since.cell)));
}

function lineView({ line, course, answer }: Seen, act: Act, { trans }: Means): HTMLElement {
  const told = status();
  told.textContent = line?.line ?? "";
  const source = line?.source;
  const row = make("div", "dtdp-row dtdp-told", told);
  if (source) {
    const insert = () => void attempt(() => act.insert(source), told, told.textContent ?? "", trans.__("No cell could be inserted."));
    row.append(button(trans.__("Insert %1 as a cell", source), insert));
  }
  if (course && !answer && line) {
    row.append(button(trans.__("Ask again"), act.again));
  }
  return row;
}

function* said(seen: Seen, act: Act, means: Means): Generator<Child> {
  const { trans } = means;
  const { answer } = seen;
  const shown = answer && readable(answer.diagnosis);
  if (answer && !shown) {
    yield render(answer.diagnosis);
  }
  if (shown) {
    const actions = act.actions();
    const isOpen = shown.question !== null;
    yield answer.told ? null : make("p", "dtd-soft", trans.__("There is nothing to go by yet: answer, or say what you see."));
    yield isOpen ? null : end(seen, act, means);
    yield answer.told || !isOpen ? render(answer.diagnosis, actions, { asksElsewhere: true, folded: isOpen }) : null;
    yield shown.question && questionView(shown.question, actions);
    yield known(shown, means);
    yield trail(seen, means);
  }
  yield form(trans.__("What else do you see?"), trans.__("Send"), act, means, quiet);
}

/** What needs no question, with where it is from. */
function known({ known: all }: Shown, { trans }: Means): HTMLElement | null {
  if (all.length === 0) {
    return null;
  }
  const rows = all.flatMap((each) => [
    make("dt", "", each.key.replaceAll("_", " ")),
    make("dd", "", each.values.join(` ${trans.__("or")} `), " ", make("span", "dtd-soft", origin(each.source))),
  ]);
  return fold("dtdp-known", trans.__("What is known (%1)", all.length), make("dl", "", ...rows));
}

/** What its reader has said. */
function trail({ course }: Seen, { trans }: Means): HTMLElement | null {
  const steps = course?.steps ?? [];
  const items = steps.map((step) =>
    step.kind === "told"
      ? make("li", "", make("q", "", step.text.length > 120 ? `${step.text.slice(0, 120)}…` : step.text))
      : make("li", "", ...prose(step.ask), " ", make("strong", "", step.kind === "answered" ? step.means : trans.__("don't know"))),
  );
  return items.length ? fold("dtdp-trail", trans.__("You said (%1)", items.length), make("ol", "", ...items)) : null;
}

/** No question would tell more. */
function end({ course }: Seen, act: Act, { trans }: Means): HTMLElement {
  return make(
    "div",
    "dtdp-row dtdp-end",
    make("strong", "", trans.__("This is it, as far as questions can tell.")),
    course?.steps.length ? quiet(trans.__("Back"), () => void act.back()) : null,
  );
}

/** Words or a log. */
function form(label: string, send: string, act: Act, { trans }: Means, look = main): HTMLElement {
  const { field } = act;
  field.placeholder = trans.__("In your words, or paste what was printed: a log, a traceback.");
  const press = look(send, () => {
    const text = field.value.trim();
    if (text) {
      field.value = "";
      void act.tell(text);
    } else {
      field.focus();
    }
  });
  return make("div", "dtdp-form", make("label", "", make("span", "dtd-label", label), field), make("div", "dtdp-row", press));
}

/** What many see: a start for those who don't know what to write. dtdebug is told in English, which it understands. */
function examples(act: Act, { trans }: Means): HTMLElement {
  const understood = exampleTexts(ENGLISH);
  const presses = exampleTexts(trans).map((text, i) => button(text, () => void act.tell(understood[i] ?? text)));
  return make("div", "dtdp-row dtdp-examples", ...presses);
}

function exampleTexts(trans: Trans): string[] {
  return [
    trans.__("It hangs and prints nothing"),
    trans.__("Out of memory"),
    trans.__("The loss turns NaN"),
    trans.__("Slower with more GPUs"),
    trans.__("The launch fails"),
    trans.__("One process has died"),
  ];
}

function fold(name: string, label: string, content: HTMLElement): HTMLElement {
  return make("details", name, make("summary", "dtd-soft", label), content);
}

function main(label: string, act: () => void): HTMLElement {
  const element = button(label, act);
  element.classList.add("dtdp-main");
  return element;
}

function quiet(label: string, act: () => void, description = ""): HTMLElement {
  const element = button(label, act, description);
  element.classList.add("dtd-quiet");
  return element;
}
