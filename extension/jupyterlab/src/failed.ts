/** An error as JupyterLab shows it, below a button that asks dtdebug what it means. */

import type { ICodeCellModel } from "@jupyterlab/cells";
import type { IRenderMime } from "@jupyterlab/rendermime-interfaces";
import type { Message } from "@lumino/messaging";
import { Panel, Widget } from "@lumino/widgets";

import { focusCard } from "../../shared/src/card.js";
import { button, make, status } from "../../shared/src/dom.js";
import { STYLE } from "../../shared/src/style.js";
import { LOAD, ask } from "./ask.js";
import { type Failure, isKnown } from "./matcher.js";
import type { Means } from "./means.js";
import { failureOf, insertBelow, isDiagnosed, numberOf, placeOf } from "./place.js";
import { row, show } from "./show.js";

/** A card tells of `%dtdebug`, which a kernel without the extension has not. */
const NO_MAGIC = ".dtdebug-unloaded .dtd-foot > .dtd-soft { display: none; }";

export class FailedOutput extends Panel implements IRenderMime.IRenderer {
  readonly #ours = new Widget();
  #cell: ICodeCellModel | null = null;
  #known = false;
  #asked = false;

  /** `error` shows it as if we were not there. */
  constructor(
    private readonly error: IRenderMime.IRenderer,
    private readonly means: Means,
    private readonly mime: string,
  ) {
    super();
    this.#ours.hide();
    this.addWidget(this.#ours);
    this.addWidget(error);
    means.changed.connect(this.#refresh, this);
  }

  /** JupyterLab may keep the elements of a closed notebook, and buttons hold on to their cell. */
  override dispose(): void {
    super.dispose(); // which disconnects it: the cell's model is gone by now, and has no outputs any more
    this.#ours.node.replaceChildren();
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    await this.error.renderModel(model);
    this.#known = await isKnown(failure(model.data[this.mime]));
    this.#refresh();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    const place = placeOf(this);
    if (place && !this.#cell) {
      this.#cell = place.cell.model;
      this.#cell.outputs.changed.connect(this.#refresh, this);
      this.#cell.stateChanged.connect(this.#refresh, this);
    }
    this.#refresh();
  }

  /** Offers a diagnosis where dtdebug knows the error and none stands there: not before the cell has ended. */
  #refresh(): void {
    if (!this.#cell || this.isDisposed) {
      return;
    }
    if (isDiagnosed(this.#cell)) {
      this.#asked = false;
      this.#ours.hide();
    } else if (!this.#asked) {
      const offers = this.#known && this.means.offersDiagnosis && this.#cell.executionState !== "running";
      if (offers && this.#ours.isHidden) {
        this.#offer();
      }
      this.#ours.setHidden(!offers);
    }
  }

  #offer(): void {
    const { trans } = this.means;
    this.#fill(row(this.#press(trans.__("Diagnose")), make("span", "dtd-soft", trans.__("dtdebug knows this kind of error"))));
  }

  #press(label: string): HTMLElement {
    const { trans } = this.means;
    return button(label, () => void this.diagnose(), trans.__("%1: ask dtdebug about this error", label));
  }

  /** Asks the kernel and shows what it says in the place of the button. */
  async diagnose(): Promise<void> {
    const place = placeOf(this);
    if (!place) {
      return;
    }
    const { trans } = this.means;
    const kernel = place.panel.sessionContext.session?.kernel;
    const told = status();
    this.#asked = true;
    this.#ours.show();
    this.#fill(row(told));
    this.#ours.node.tabIndex = -1;
    this.#ours.node.focus(); // the button that was pressed is gone
    told.textContent =
      kernel?.status === "busy"
        ? trans.__("The kernel computes: the answer comes when that has ended.")
        : trans.__("dtdebug looks at it …");
    const reply = await ask(kernel, { ...failureOf(place.cell.model), answers: {} }, trans);
    if (this.isDisposed || !this.#asked) {
      return;
    }
    const insert = (source: string) =>
      button(trans.__("Insert %1 as a cell", source), () => insertBelow(place, source));
    if ("line" in reply) {
      told.textContent = reply.line;
      this.#fill(row(told, reply.source ? insert(reply.source) : null, this.#press(trans.__("Diagnose again"))));
    } else {
      const card = make("div", reply.loaded ? "" : "dtdebug-unloaded");
      this.#fill(card);
      show(this, card, reply.diagnosis, this.means);
      this.means.diagnosed.emit({
        panel: place.panel,
        id: `${place.cell.model.id}@${new Date().toISOString()}`,
        number: numberOf(place.cell),
        diagnosis: reply.diagnosis,
      });
      if (!reply.loaded) {
        told.textContent = trans.__("This is from the printed text alone; dtdebug sees more if it is loaded before the run:");
        this.#ours.node.append(row(told, insert(LOAD)));
      }
    }
    focusCard(this.#ours.node);
  }

  #fill(...children: HTMLElement[]): void {
    this.#ours.node.replaceChildren(make("style", "", STYLE, NO_MAGIC), ...children);
  }
}

/** The error in a message or a notebook, whoever wrote it. */
function failure(data: unknown): Failure {
  const { ename, evalue, traceback } = (data ?? {}) as Partial<Record<keyof Failure, unknown>>;
  return {
    ename: String(ename ?? ""),
    evalue: String(evalue ?? ""),
    traceback: Array.isArray(traceback) ? traceback.map(String) : [],
  };
}
