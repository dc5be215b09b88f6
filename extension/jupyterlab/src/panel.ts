/** The panel beside the notebook: what the ranks do now, the wizard, the history. */

import type { INotebookTracker } from "@jupyterlab/notebook";
import { Panel, PanelLayout, Widget } from "@lumino/widgets";

import { make } from "../../shared/src/dom.js";
import { STYLE } from "../../shared/src/style.js";
import type { HistoryView } from "./historyview.js";
import { icon } from "./icon.js";
import type { Means } from "./means.js";
import type { Now } from "./now.js";
import type { Place } from "./place.js";
import { SHEET } from "./sheet.js";
import type { Wizard } from "./wizard.js";

/** The widget's id. */
export const PANEL = "dtdebug-panel";

export class DebugPanel extends Panel {
  readonly #guide: Section;

  constructor(
    private readonly tracker: INotebookTracker | null,
    private readonly now: Now,
    private readonly wizard: Wizard,
    private readonly history: HistoryView,
    { trans }: Means,
  ) {
    super();
    this.id = PANEL;
    this.title.icon = icon;
    this.title.caption = trans.__("dtdebug: why distributed training fails or hangs");
    this.addClass("dtd");
    this.addClass("dtdp");
    this.node.setAttribute("role", "region");
    this.node.setAttribute("aria-label", "dtdebug");
    this.node.prepend(make("style", "", STYLE, SHEET));
    this.#guide = new Section(trans.__("Wizard"), wizard);
    this.addWidget(new Section(trans.__("Now"), now));
    this.addWidget(this.#guide);
    this.addWidget(new Section(trans.__("History"), history));
    tracker?.currentChanged.connect(this.#follow, this);
    this.#follow();
  }

  override dispose(): void {
    this.tracker?.currentChanged.disconnect(this.#follow, this);
    super.dispose();
  }

  /** Puts the keyboard into the panel, at its first button or, where that is folded away or disabled, at its first part. */
  takeFocus(): void {
    this.now.takeFocus();
    if (!this.node.contains(document.activeElement)) {
      this.node.querySelector<HTMLElement>("summary")?.focus();
    }
  }

  /** Guides its reader from this failed cell on; without one the wizard asks what is seen. */
  guide(place: Place | null): void {
    this.#guide.open();
    if (place) {
      void this.wizard.start(place);
    }
  }

  #follow(): void {
    const current = this.tracker?.currentWidget ?? null;
    this.now.follow(current);
    this.history.follow(current);
    void this.wizard.follow(current);
  }
}

/** A part that folds; what is folded does no work. */
class Section extends Widget {
  constructor(label: string, content: Widget) {
    const node = make("details", "dtdp-section", make("summary", "", label));
    node.open = true;
    super({ node });
    const layout = new PanelLayout();
    this.layout = layout;
    content.addClass("dtdp-body");
    layout.addWidget(content);
    node.addEventListener("toggle", () => content.setHidden(!node.open));
  }

  open(): void {
    (this.node as HTMLDetailsElement).open = true;
  }
}
