/** Puts a card into an output, with buttons that act in its notebook. */

import type { Widget } from "@lumino/widgets";

import type { Actions } from "../../shared/src/actions.js";
import { focusCard, render } from "../../shared/src/card.js";
import { button, make } from "../../shared/src/dom.js";
import { answerLine } from "../../shared/src/words.js";
import { LOAD, ask } from "./ask.js";
import type { Means } from "./means.js";
import { failureOf, fitOf, insertBelow, openPlace, placeOf, runBelow } from "./place.js";

/**
 * Shows a diagnosis in an element of an output. An answer is a cell below that runs, so that the notebook tells how the
 * cause was found; where the kernel has no extension that could run it, the card itself goes on.
 */
export function show(output: Widget, into: HTMLElement, diagnosis: unknown, means: Means): void {
  const { trans } = means;
  const answers: Record<string, string> = {};
  const draw = (data: unknown) => into.replaceChildren(card(data), ...trail());

  function card(data: unknown): HTMLElement {
    const place = placeOf(output);
    const inNotebook: Actions = place
      ? {
          openPlace: (at) => openPlace(place.panel, at, { number: place.cell.model.executionCount, cell: place.cell }),
          fits: (diff) => fitOf(place, diff, trans),
          answer,
          insert: (source) => insertBelow(place, source),
          guide: () => means.guided.emit(place),
        }
      : {};
    const element = render(data, means.keep ? { ...inNotebook, feedback: means.keep } : inNotebook, {
      isOpen: Object.keys(answers).length > 0, // who answers goes on with the next question
    });
    keepKeys(element);
    return element;
  }

  async function answer(key: string, value: string): Promise<string> {
    const place = placeOf(output);
    if (!place) {
      throw new Error("the output has left its notebook");
    }
    const question = { ...failureOf(place.cell.model), answers: { ...answers, [key]: value } };
    const reply = await ask(place.panel.sessionContext.session?.kernel, question, trans);
    if ("line" in reply) {
      return [reply.line, reply.source].filter(Boolean).join(" ");
    }
    if (!reply.told) {
      return trans.__("This kernel has not seen the failure: run %1 and the failed cell again.", LOAD);
    }
    if (reply.loaded) {
      runBelow(place, answerLine(key, value));
      return trans.__("Answered in the cell below.");
    }
    answers[key] = value;
    draw(reply.diagnosis);
    const choice = into.querySelector<HTMLElement>(".dtd-choices button");
    choice ? choice.focus() : focusCard(into);
    return "";
  }

  /** What was answered in this card, as the notebook does not keep it. */
  function* trail(): Generator<HTMLElement> {
    const given = Object.entries(answers).map(([key, value]) => `${key} = ${value}`);
    if (given.length) {
      const back = button(trans.__("Take back"), () => {
        Object.keys(answers).forEach((key) => delete answers[key]);
        draw(diagnosis);
        focusCard(into);
      });
      yield row(make("span", "dtd-soft", trans.__("Answered here: %1.", given.join(", "))), back);
    }
  }

  draw(diagnosis);
}

/**
 * Shows an output above the others of its cell: a traceback is taller than the window, and below it nobody sees a card.
 * Only the look of this page changes: the notebook keeps the order in which the outputs came.
 */
export function raise(node: HTMLElement): void {
  const child = node.closest<HTMLElement>(".jp-OutputArea-child");
  const area = child?.parentElement;
  if (child && area) {
    Object.assign(area.style, { display: "flex", flexDirection: "column" });
    child.style.order = "-1";
  }
}

/** A line with buttons, in the look of the card. */
export function row(...children: (HTMLElement | null)[]): HTMLElement {
  const line = make("div", "dtd", make("div", "dtd-feedback", ...children));
  keepKeys(line);
  return line;
}

/** Enter and the arrows are the notebook's shortcuts; on our buttons they are the buttons'. */
function keepKeys(element: HTMLElement): void {
  element.dataset["lmSuppressShortcuts"] = "true";
}
