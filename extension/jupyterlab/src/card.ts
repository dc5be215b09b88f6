/** Shows the diagnosis that the kernel has published, live or saved. */

import type { IRenderMime } from "@jupyterlab/rendermime-interfaces";
import type { Message } from "@lumino/messaging";
import { Panel, Widget } from "@lumino/widgets";

import type { Means } from "./means.js";
import { DIAGNOSIS } from "./place.js";
import { raise, show } from "./show.js";

export class DiagnosisOutput extends Panel implements IRenderMime.IRenderer {
  #model: IRenderMime.IMimeModel | null = null;

  /** `plain` makes what shows the output to those who have turned the card off. */
  constructor(
    private readonly means: Means,
    private readonly plain: () => IRenderMime.IRenderer,
  ) {
    super();
    means.changed.connect(this.#draw, this);
  }

  /** JupyterLab may keep the elements of a closed notebook, and buttons hold on to their cell. */
  override dispose(): void {
    super.dispose();
    this.node.replaceChildren();
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.#model = model;
    this.#draw();
  }

  /** Only now is it known whether the output stands in a notebook, whose cells its buttons may add to. */
  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    if (this.widgets.length === 0) {
      this.#draw();
    }
  }

  #draw(): void {
    for (const each of [...this.widgets]) {
      each.dispose();
    }
    if (!this.#model || !this.isAttached) {
      return;
    }
    if (this.means.showsCards) {
      const card = new Widget();
      this.addWidget(card);
      raise(this.node);
      show(this, card.node, this.#model.data[DIAGNOSIS], this.means);
    } else {
      const plain = this.plain();
      this.addWidget(plain);
      void plain.renderModel(this.#model);
    }
  }
}
