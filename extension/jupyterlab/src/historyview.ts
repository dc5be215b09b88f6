/** The history of the notebook in front: a line for each diagnosis, which unfolds to its card. */

import type { NotebookPanel } from "@jupyterlab/notebook";
import type { Message } from "@lumino/messaging";
import { Widget } from "@lumino/widgets";

import type { Actions } from "../../shared/src/actions.js";
import { headline, render } from "../../shared/src/card.js";
import { button, make, status } from "../../shared/src/dom.js";
import { type Entry, readable } from "./entries.js";
import type { History } from "./history.js";
import type { Means } from "./means.js";
import { openPlace, shortTime } from "./place.js";

export class HistoryView extends Widget {
  #panel: NotebookPanel | null = null;
  #latest = 0;

  constructor(
    private readonly history: History,
    private readonly means: Means,
  ) {
    super();
    this.addClass("dtdp-history");
    history.changed.connect(this.#changed, this);
  }

  override dispose(): void {
    this.history.changed.disconnect(this.#changed, this);
    super.dispose();
  }

  follow(panel: NotebookPanel | null): void {
    this.#panel = panel;
    void this.#draw();
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    void this.#draw();
  }

  #changed(_: unknown, path: string): void {
    if (path === this.#panel?.context.path) {
      void this.#draw();
    }
  }

  async #draw(): Promise<void> {
    if (!this.isVisible) {
      return;
    }
    const { trans } = this.means;
    const latest = ++this.#latest;
    const panel = this.#panel;
    const told = status();
    let entries: readonly Entry[] = [];
    try {
      entries = panel ? await this.history.of(panel.context.path) : [];
    } catch {
      told.textContent = trans.__("The history of this notebook can't be read; it begins anew.");
    }
    if (latest !== this.#latest || this.isDisposed) {
      return;
    }
    const clear = button(trans.__("Clear"), () => void this.#clear(), trans.__("Clear the history of this notebook"));
    this.node.replaceChildren(
      told,
      entries.length
        ? make("div", "", ...entries.map((each) => this.#entry(each)))
        : make("p", "dtd-soft", panel ? trans.__("No diagnosis yet.") : trans.__("No notebook is open.")),
      ...(entries.length ? [make("div", "dtdp-row", clear)] : []),
    );
  }

  async #clear(): Promise<void> {
    if (this.#panel) {
      await this.history.clear(this.#panel.context.path);
    }
  }

  #entry({ at, number, diagnosis }: Entry): HTMLElement {
    const shown = readable(diagnosis);
    const when = make("time", "dtd-soft", shortTime(new Date(at)));
    when.dateTime = at;
    const summary = make("summary", "", make("span", "", when, " ", make("code", "", number), " ", shown && headline(shown)));
    const entry = make("details", "dtdp-entry", summary);
    entry.addEventListener("toggle", () => {
      if (entry.open && entry.childElementCount === 1) {
        entry.append(render(diagnosis, this.#actions(), { asksElsewhere: true }));
      }
    });
    return entry;
  }

  #actions(): Actions {
    const panel = this.#panel;
    return panel ? { openPlace: (at) => openPlace(panel, at, { number: null, cell: null }) } : {};
  }
}
