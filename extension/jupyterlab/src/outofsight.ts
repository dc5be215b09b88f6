/** Says in the status bar that a cell has an answer while its card is out of sight, and reads the first line out. */

import { Notification } from "@jupyterlab/apputils";
import type { CodeCell } from "@jupyterlab/cells";
import type { INotebookTracker, NotebookPanel } from "@jupyterlab/notebook";
import type { IStatusBar } from "@jupyterlab/statusbar";
import { Signal } from "@lumino/signaling";
import { Widget } from "@lumino/widgets";

import { focusCard } from "../../shared/src/card.js";
import { make } from "../../shared/src/dom.js";
import { readable } from "./entries.js";
import type { Ended, Means } from "./means.js";
import { diagnosisIn, goTo, numberOf } from "./place.js";
import { STATUS } from "./statusitem.js";

/** Milliseconds until a card that has come is drawn. */
const DRAWN = 150;

interface Answered {
  readonly panel: NotebookPanel;
  readonly cell: CodeCell;
  readonly line: string;
}

/** A button that goes to the card; it is there while the card is not in sight, until a cell passes. */
export class OutOfSight extends Widget {
  readonly activeStateChanged = new Signal<this, void>(this);

  readonly #text = make("span", "");
  readonly #press = make("button", "", make("i", ""), this.#text);
  readonly #told = make("span", "");
  readonly #observer = new IntersectionObserver((seen) => this.#see(seen.some((each) => each.isIntersecting)));
  #answered: Answered | null = null;
  #isActive = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly tracker: INotebookTracker,
    private readonly means: Means,
    private readonly turnTo: (panel: NotebookPanel) => void,
  ) {
    super();
    this.addClass("dtdebug-stands"); // it looks as that of a hang
    this.addClass("dtdebug-answers");
    this.#press.type = "button";
    this.#press.addEventListener("click", () => void this.reveal());
    this.#told.setAttribute("role", "status");
    this.node.append(make("style", "", STATUS), this.#press, this.#told);
    means.ended.connect(this.#ended, this);
    tracker.currentChanged.connect(this.#look, this);
  }

  get isActive(): boolean {
    return this.#isActive;
  }

  /** The first line of the answer that is out of sight. */
  get line(): string {
    return this.#answered?.line ?? "";
  }

  override dispose(): void {
    clearTimeout(this.#timer);
    this.#observer.disconnect();
    this.means.ended.disconnect(this.#ended, this);
    super.dispose();
  }

  /** Brings the card into sight and puts the keyboard into it. */
  async reveal(): Promise<void> {
    const { panel, cell } = this.#answered ?? {};
    if (panel && cell && !cell.isDisposed) {
      this.turnTo(panel);
      await goTo(panel, cell);
      const card = cardOf(cell);
      card?.scrollIntoView({ block: "nearest" });
      card && focusCard(card);
    }
  }

  #ended(_: unknown, { notebook, cell }: Ended): void {
    const panel = this.tracker.find((each) => each.content === notebook);
    const shown = this.means.showsCards ? readable(diagnosisIn(cell.model)) : null;
    const line = shown?.answer?.headline || shown?.ordinary || shown?.happened || "";
    if (panel && line) {
      this.#answered = { panel, cell, line };
      this.#text.textContent = `${numberOf(cell)} ${line}`;
      const trans = this.means.trans;
      this.#press.title = `${line}\n${trans.__("Click to see the answer.")}`;
      this.#told.textContent = `dtdebug: ${line}`;
    } else {
      this.#answered = null;
      this.#told.textContent = "";
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#look(), DRAWN);
  }

  /** Watches whether the card is in sight; another run draws another one. */
  #look(): void {
    this.#observer.disconnect();
    const { panel, cell } = this.#answered ?? {};
    const card = cell && !cell.isDisposed && panel?.isVisible ? cardOf(cell) : null;
    card ? this.#observer.observe(card) : this.#see(!panel?.isVisible);
  }

  #see(isSeen: boolean): void {
    const isActive = this.#answered !== null && !isSeen;
    if (isActive !== this.#isActive) {
      this.#isActive = isActive;
      this.activeStateChanged.emit();
    }
  }
}

export function addOutOfSight(
  bar: IStatusBar | null,
  tracker: INotebookTracker,
  means: Means,
  activate: (panel: NotebookPanel) => void,
): void {
  const item = new OutOfSight(tracker, means, activate);
  if (bar) {
    bar.registerStatusItem("dtdebug:answer", {
      item,
      align: "left",
      rank: 101,
      priority: 1,
      isActive: () => item.isActive,
      activeStateChanged: item.activeStateChanged,
    });
    return;
  }
  const trans = means.trans;
  let shown: string | null = null; // Notebook 7 has no status bar
  item.activeStateChanged.connect(() => {
    if (item.isActive && shown === null) {
      const actions = [{ label: trans.__("Show"), callback: () => void item.reveal() }];
      shown = Notification.info(`dtdebug: ${item.line}`, { autoClose: false, actions });
    } else if (!item.isActive && shown !== null) {
      Notification.dismiss(shown);
      shown = null;
    }
  });
}

function cardOf(cell: CodeCell): HTMLElement | null {
  return cell.node.querySelector<HTMLElement>(".dtd-card");
}
