/** What all parts of dtdebug share in one JupyterLab. */

import type { CodeCell } from "@jupyterlab/cells";
import type { Notebook, NotebookPanel } from "@jupyterlab/notebook";
import type { ServerConnection } from "@jupyterlab/services";
import type { ISettingRegistry } from "@jupyterlab/settingregistry";
import type { TranslationBundle } from "@jupyterlab/translation";
import { Signal } from "@lumino/signaling";

import type { Keep } from "./feedback.js";
import type { Place } from "./place.js";

/** A diagnosis that stands in a notebook now. */
export interface Diagnosed {
  readonly panel: NotebookPanel;
  /** One diagnosis that grows has one name. */
  readonly id: string;
  /** The cell as its reader knows it. */
  readonly number: string;
  readonly diagnosis: unknown;
}

/** A cell of code that has ended, whoever has run it. */
export interface Ended {
  readonly notebook: Notebook;
  readonly cell: CodeCell;
  readonly success: boolean;
}

/** When the panel opens by itself. */
export type Opens = "hang" | "failure" | "never";

export class Means {
  /** Emitted when the user has turned something on or off. */
  readonly changed = new Signal<this, void>(this);
  readonly diagnosed = new Signal<this, Diagnosed>(this);
  readonly ended = new Signal<this, Ended>(this);
  /** Someone wants to be guided from this failed cell on. */
  readonly guided = new Signal<this, Place>(this);

  #settings: ISettingRegistry.ISettings | null = null;

  constructor(
    readonly trans: TranslationBundle,
    readonly keep: Keep | null,
    readonly server: ServerConnection.ISettings,
  ) {}

  follow(settings: ISettingRegistry.ISettings): void {
    this.#settings = settings;
    settings.changed.connect(() => this.changed.emit());
    this.changed.emit();
  }

  get showsCards(): boolean {
    return this.#get("enabled") !== false;
  }

  get offersDiagnosis(): boolean {
    return this.showsCards && this.#get("button") !== false;
  }

  get side(): "left" | "right" {
    return this.#get("side") === "left" ? "left" : "right";
  }

  get opens(): Opens {
    const value = this.#get("panel");
    return this.showsCards && (value === "hang" || value === "failure") ? value : "never";
  }

  /** Seconds without output after which a running cell is looked at. */
  get hangAfter(): number {
    const value = this.#get("hangAfter");
    return typeof value === "number" && value >= 1 ? value : 20;
  }

  #get(name: string): unknown {
    return this.#settings?.composite[name];
  }
}
