/** The next question with its answers as buttons. */

import { type Actions, copyText } from "./actions.js";
import type { Asked } from "./diagnosis.js";
import { attempt, button, make, part, status } from "./dom.js";
import type { Filled } from "./read.js";
import { trans } from "./trans.js";
import { answerLine, prose } from "./words.js";

/** Answers that can be read at a glance; of more only the likely ones stand open. */
const [FEW, LIKELY] = [4, 3];

/** A host that takes `skip` or `back` is a guide, which shows one question at a time. */
export function questionView(asked: Filled<Asked>, host: Actions): HTMLElement | null {
  const isGuided = host.skip !== undefined || host.back !== undefined;
  const told = status();
  const line = make("code", "dtd-command");
  const choose = host.answer
    ? answering(asked.key, host.answer.bind(host), line, told)
    : copying(asked.key, host, line, told);
  const choices = make("div", "dtd-choices");
  choices.setAttribute("role", "group");
  choices.setAttribute("aria-label", asked.ask);
  const buttons = asked.values
    .filter(([value]) => answerLine(asked.key, value))
    .map(([value, means]) => {
      const choice = button(means, () => choose(value, choice, choices));
      choice.title = value;
      choice.setAttribute("aria-pressed", "false");
      return choice;
    });
  const shown = buttons.length > FEW ? LIKELY : buttons.length; // they come with the likeliest first
  choices.append(...buttons.slice(0, shown));
  if (shown < buttons.length) {
    choices.append(fold(trans.__("Other answers"), ...buttons.slice(shown)));
  }
  if (!host.answer && choices.childElementCount > 0) {
    told.textContent = trans.__("Choose an answer to copy the line that gives it; then run it in a cell.");
  }
  return part(
    "dtd-question",
    trans.__("Next question"),
    make("p", "dtd-ask", ...prose(asked.ask)),
    asked.why && !isGuided ? make("p", "dtd-soft", ...prose(asked.why)) : null,
    choices,
    isGuided ? steps(asked.key, host, choices, told) : null,
    make("p", "dtd-answer", line, told),
    asked.why && isGuided ? fold(trans.__("Why?"), make("p", "", ...prose(asked.why))) : null,
    asked.how || asked.command ? how(asked, isGuided) : null,
  );
}

/** What else can be done than to answer. */
function steps(key: string, host: Actions, choices: HTMLElement, told: HTMLElement): HTMLElement {
  const row = make("div", "dtd-steps");
  const step = (label: string, doing: () => void | string | Promise<void | string>) => {
    const press = button(label, () => {
      setDisabled([choices, row], true);
      const failed = trans.__("That did not arrive: try again.");
      void attempt(doing, told, "", failed).then(() => setDisabled([choices, row], false));
    });
    press.classList.add("dtd-quiet");
    return press;
  };
  const [skip, back] = [host.skip?.bind(host), host.back?.bind(host)];
  row.append(
    ...(skip ? [step(trans.__("Don't know"), () => skip(key))] : []),
    ...(back ? [step(trans.__("Back"), back)] : []),
  );
  return row;
}

function how(asked: Filled<Asked>, isGuided: boolean): HTMLElement {
  return fold(
    isGuided ? trans.__("Show me how") : trans.__("How to find out"),
    asked.how ? make("p", "", ...prose(asked.how)) : null,
    asked.command ? make("code", "dtd-command", asked.command) : null,
  );
}

function fold(label: string, ...children: (HTMLElement | null)[]): HTMLElement {
  return make("details", "dtd-how", make("summary", "dtd-soft", label), ...children);
}

type Choose = (value: string, choice: HTMLButtonElement, choices: HTMLElement) => void;

/** The host takes the answer, one at a time; the reader may choose again. */
function answering(key: string, answer: NonNullable<Actions["answer"]>, line: HTMLElement, told: HTMLElement): Choose {
  return (value, choice, choices) => {
    press(choice, choices);
    setDisabled([choices], true);
    line.textContent = "";
    const failed = trans.__("That did not arrive; this line in a cell answers it.");
    void attempt(() => answer(key, value), told, trans.__("Sent."), failed).then((arrived) => {
      line.textContent = arrived ? "" : answerLine(key, value);
      setDisabled([choices], false);
    });
  };
}

/** Nobody takes the answer: the line that gives it is shown and copied. */
function copying(key: string, host: Actions, line: HTMLElement, told: HTMLElement): Choose {
  return (value, choice, choices) => {
    press(choice, choices);
    const command = answerLine(key, value);
    line.textContent = command;
    const [done, failed] = [trans.__("Copied: run it in a cell."), trans.__("Run this line in a cell.")];
    void attempt(() => copyText(command, host), told, done, failed);
  };
}

function press(choice: HTMLButtonElement, choices: HTMLElement): void {
  for (const each of choices.querySelectorAll("button")) {
    each.setAttribute("aria-pressed", String(each === choice));
  }
}

function setDisabled(rows: readonly HTMLElement[], value: boolean): void {
  for (const each of rows.flatMap((row) => [...row.querySelectorAll("button")])) {
    each.disabled = value;
  }
}
