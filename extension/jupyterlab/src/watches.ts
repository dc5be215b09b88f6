/** The watches of all open notebooks: one each, which ends with its notebook. */

import type { INotebookTracker, NotebookPanel } from "@jupyterlab/notebook";
import { Signal } from "@lumino/signaling";

import type { Means } from "./means.js";
import { glance, look } from "./requests.js";
import { Runs } from "./runs.js";
import { Watch } from "./watch.js";

/** A notebook in which something hangs. */
export interface Standing {
  readonly panel: NotebookPanel;
  readonly watch: Watch;
}

export class Watches {
  /** A watch has news, or another notebook is in front. */
  readonly changed = new Signal<this, void>(this);

  readonly #all = new Map<NotebookPanel, { runs: Runs; watch: Watch }>();

  constructor(
    private readonly tracker: INotebookTracker,
    private readonly means: Means,
  ) {
    tracker.forEach((panel) => this.#add(panel));
    tracker.widgetAdded.connect((_, panel) => this.#add(panel));
    tracker.currentChanged.connect(() => this.changed.emit());
    means.changed.connect(() => this.#all.forEach(({ watch }) => watch.reset()));
  }

  of(panel: NotebookPanel | null): Watch | null {
    return (panel && this.#all.get(panel)?.watch) ?? null;
  }

  /** What runs in a notebook: its first cell that has not ended. */
  runs(panel: NotebookPanel): Runs | null {
    return this.#all.get(panel)?.runs ?? null;
  }

  /** The notebook in front if something hangs in it, else another one. */
  get standing(): Standing | null {
    const current = this.tracker.currentWidget;
    let found: Standing | null = null;
    for (const [panel, { watch }] of this.#all) {
      if (watch.stands && (!found || panel === current)) {
        found = { panel, watch };
      }
    }
    return found;
  }

  #add(panel: NotebookPanel): void {
    if (this.#all.has(panel)) {
      return;
    }
    const { server, trans } = this.means;
    const kernel = () => panel.sessionContext.session?.kernel;
    const runs = new Runs(panel);
    const watch = new Watch(
      runs,
      {
        glance: () => glance(kernel()?.id ?? "", server, trans),
        look: (kind, isForeign) => look(kernel(), kind, server, trans, isForeign),
      },
      () => ({ hangAfter: this.means.showsCards ? this.means.hangAfter : 0 }),
    );
    this.#all.set(panel, { runs, watch });
    watch.changed.connect(() => this.changed.emit());
    panel.disposed.connect(() => {
      this.#all.delete(panel);
      watch.dispose();
      this.changed.emit();
    });
    this.changed.emit();
  }
}
