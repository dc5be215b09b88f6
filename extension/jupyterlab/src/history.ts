/** The diagnoses of each notebook, from its outputs as they come and from the wizard. */

import type { INotebookTracker } from "@jupyterlab/notebook";
import { Signal } from "@lumino/signaling";

import { type Entry, added } from "./entries.js";
import type { Kept } from "./kept.js";
import type { Diagnosed, Means } from "./means.js";
import { diagnosisIn, numberOf } from "./place.js";

export class History {
  /** The history of the notebook with this path has changed. */
  readonly changed = new Signal<this, string>(this);

  constructor(
    private readonly kept: Kept<readonly Entry[]>,
    means: Means,
    tracker: INotebookTracker | null,
  ) {
    means.diagnosed.connect((_, each) => void this.#add(each));
    means.ended.connect((_, { notebook, cell }) => {
      const panel = tracker?.find((each) => each.content === notebook);
      if (panel) {
        const run = `${cell.model.id}@${new Date().toISOString()}`;
        void this.#add({ panel, id: run, number: numberOf(cell), diagnosis: diagnosisIn(cell.model) });
      }
    });
  }

  /**
   * Newest first.
   *
   * @throws Corrupted if it can't be read.
   */
  async of(path: string): Promise<readonly Entry[]> {
    return (await this.kept.fetch(path)) ?? [];
  }

  async clear(path: string): Promise<void> {
    await this.kept.remove(path);
    this.changed.emit(path);
  }

  /** The notebook has another name. */
  async move(from: string, to: string): Promise<void> {
    await this.kept.move(from, to);
    this.changed.emit(to);
  }

  async #add({ panel, id, number, diagnosis }: Diagnosed): Promise<void> {
    if (diagnosis !== undefined) {
      const { path } = panel.context;
      const entry: Entry = { id, at: new Date().toISOString(), number, diagnosis };
      await this.kept.change(path, (before) => added(before ?? [], entry));
      this.changed.emit(path);
    }
  }
}
