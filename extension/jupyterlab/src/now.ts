/** What the ranks of the notebook in front do now, and what can be done about it. */

import type { NotebookPanel } from "@jupyterlab/notebook";
import type { ServiceManager } from "@jupyterlab/services";
import type { Message } from "@lumino/messaging";
import { Panel, Widget } from "@lumino/widgets";

import { button, make, status } from "../../shared/src/dom.js";
import { RanksView } from "../../shared/src/ranks/view.js";
import type { Line } from "./ask.js";
import { BeforeRun } from "./beforerun.js";
import { Choices } from "./choices.js";
import { LeftBehind } from "./left.js";
import type { Means } from "./means.js";
import { insertBelow, openPlace } from "./place.js";
import { Beside } from "./subshell.js";
import type { Watch } from "./watch.js";
import type { Watches } from "./watches.js";

const LOOK = `
.dtdp-now > .lm-Widget > * { margin-bottom: 8px; }
.dtdp-now .dtdp-row:empty, .dtdp-now .dtd-status:empty { display: none; }
.dtdp-now .dtdp-state > .dtd-status { flex: 1 1 12em; color: inherit; }
.dtdp-left:not(:has(.dtdp-row)):has(.dtd-status:empty) { display: none; }
.dtdp-left .dtdp-row > span, .dtdp-doctor .dtdp-row > span { flex: 1 1 12em; }
.dtdp-doctor:empty { display: none; }
.dtdp-doctor ul { margin: 2px 0 0; padding-inline-start: 26px; overflow-wrap: anywhere; }
.dtdp-doctor i { display: inline-block; width: 8px; height: 8px; margin-inline-end: 6px; border-radius: 50%;
  background: var(--jp-success-color1, #388e3c); }
.dtdp-doctor [data-state="warning"] i { background: var(--jp-warn-color1, #c77700); }
.dtdp-doctor [data-state="fault"] i { background: var(--jp-error-color1, #d32f2f); }
.dtdebug-choices { margin: 8px 0; }
.dtd .dtdebug-choices > p { margin-top: 6px; }
.dtdebug-beside { padding-top: 10px; border-top: 1px solid var(--jp-border-color2); }
.dtdebug-beside .jupyter-widgets, .dtdebug-beside .widget-radio { max-width: 100%; }
.dtdebug-beside [class*="radio-box"] label { height: auto; line-height: 1.4; white-space: normal; }
`;

export class Now extends Panel {
  readonly #told = status();
  readonly #look: HTMLButtonElement;
  readonly #lines = make("div", "dtdp-row");
  readonly #choices = make("div", "");
  readonly #body: HTMLElement;
  readonly #left: LeftBehind;
  readonly #before: BeforeRun;
  #panel: NotebookPanel | null = null;
  #ranks: RanksView | null = null;
  #chosen: Choices | null = null;
  #beside: Beside | null = null;
  #drawn: unknown = null;

  constructor(
    private readonly watches: Watches | null,
    private readonly services: ServiceManager.IManager,
    private readonly means: Means,
  ) {
    super();
    const { trans } = means;
    this.addClass("dtdp-now");
    this.#look = button(trans.__("Look now"), () => void this.#refresh());
    this.#look.title = trans.__("Looks at the ranks once");
    const current = () => this.#panel?.context.path ?? "";
    this.#left = new LeftBehind(services.sessions, means.server, trans, () => this.isVisible, current);
    const state = make("div", "dtdp-row dtdp-state", this.#told, this.#look);
    this.#before = new BeforeRun(trans);
    this.#body = make("div", "", state, this.#before.node, this.#left.node, this.#lines, this.#choices);
    this.node.prepend(make("style", "", LOOK));
    this.addWidget(new Widget({ node: this.#body }));
    watches?.changed.connect(this.#draw, this);
    means.ended.connect(this.#draw, this);
  }

  override dispose(): void {
    this.watches?.changed.disconnect(this.#draw, this);
    this.means.ended.disconnect(this.#draw, this);
    this.#ranks?.dispose();
    this.#left.dispose();
    super.dispose();
  }

  /** Shows this notebook from now on; what belongs to another one goes. */
  follow(panel: NotebookPanel | null): void {
    if (panel !== this.#panel) {
      this.#panel = panel;
      this.#chosen = null;
      this.#choices.replaceChildren();
      this.#beside?.dispose();
      void panel?.revealed.then(() => this.#draw()); // only then has it its cells
    }
    this.#draw();
  }

  /** The same, and brings it into sight. */
  turnTo(panel: NotebookPanel | null): void {
    this.follow(panel);
    const section = this.node.closest("details");
    if (section) {
      section.open = true;
      section.scrollIntoView({ block: "start" });
    }
    this.#look.focus({ preventScroll: true });
  }

  /** Puts the keyboard here. */
  takeFocus(): void {
    this.#look.focus();
  }

  /** Opens the wizard in a subshell of the notebook's kernel: one at a time, for each is a thread of the kernel. */
  askBeside(panel: NotebookPanel | null): void {
    this.turnTo(panel);
    this.#beside?.dispose();
    if (panel) {
      this.#beside = new Beside(panel, this.means.trans);
      this.addWidget(this.#beside);
      this.#beside.node.scrollIntoView({ block: "nearest" });
    }
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.#draw();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this.#draw();
  }

  /** Nothing is drawn while nobody looks. */
  #draw(): void {
    if (!this.isVisible) {
      return;
    }
    this.#left.look();
    const panel = this.#panel;
    this.#before.draw(panel);
    const watch = this.watches?.of(panel) ?? null;
    const view = watch?.seen?.view ?? null;
    say(this.#told, this.#state(watch));
    this.#look.hidden = !watch;
    this.#look.disabled = watch?.isAsking ?? false;
    if (panel && watch && !this.#chosen) {
      const cell = () => this.watches?.runs(panel)?.cell ?? null;
      this.#chosen = new Choices({ panel, watch, cell }, this.means, this.services.contents);
      this.#choices.replaceChildren(this.#chosen.node);
    }
    this.#lines.replaceChildren(...(panel ? this.#line(panel, watch?.trouble ?? watch?.seen?.note) : []));
    if (view && view !== this.#drawn) {
      this.#ranks ??= this.#makeRanks();
      this.#ranks.update(view);
    }
    this.#drawn = view;
    if (this.#ranks) {
      this.#ranks.node.hidden = view === null;
    }
    this.#chosen?.update();
  }

  #state(watch: Watch | null): string {
    const { trans } = this.means;
    if (!watch) {
      return trans.__("There is no active notebook.");
    }
    if (watch.isAsking) {
      return trans.__("dtdebug looks at the ranks …");
    }
    if (watch.stands) {
      return watch.seen
        ? trans.__("The cell is not making progress. Looked at %1:", watch.seenAt.toLocaleTimeString())
        : trans.__("The cell is not making progress.");
    }
    if (watch.runs) {
      return watch.isPatient
        ? trans.__("A cell runs; dtdebug is quiet for five minutes.")
        : trans.__("A cell runs. When its ranks hang, this shows who waits for whom.");
    }
    return watch.seen
      ? trans.__("No cell runs. What was seen last:")
      : trans.__("No cell runs. When the ranks of one hang, this shows who waits for whom.");
  }

  #line(panel: NotebookPanel, line: Line | null | undefined): HTMLElement[] {
    const { trans } = this.means;
    const { source } = line ?? {};
    const insert = () => {
      const cell = panel.content.activeCell;
      if (cell && source) {
        insertBelow({ panel, cell }, source);
      }
    };
    const told = line ? [make("span", "dtd-soft", line.line)] : [];
    return source ? [...told, button(trans.__("Insert %1 as a cell", source), insert)] : told;
  }

  /** Only where there is something to draw, for it is large. */
  #makeRanks(): RanksView {
    const ranks = new RanksView({ openPlace: (at) => this.#open(at) });
    this.#choices.before(ranks.node);
    ranks.node.querySelector(".dtd-verdict")?.after(this.#choices); // under the verdict, not below all stacks
    return ranks;
  }

  #open(at: string): void {
    const panel = this.#panel;
    if (panel) {
      const number = this.watches?.of(panel)?.seen?.view.cell?.number;
      void openPlace(panel, at, { number, cell: this.watches?.runs(panel)?.cell ?? null });
    }
  }

  async #refresh(): Promise<void> {
    const watch = this.watches?.of(this.#panel);
    await watch?.refresh(watch.runs ? "hang" : "state");
  }
}

/** A line that is read out is written only when it is another. */
function say(told: HTMLElement, text: string): void {
  if (told.textContent !== text) {
    told.textContent = text;
  }
}
