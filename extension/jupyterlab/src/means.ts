/** What all outputs of dtdebug share in one JupyterLab. */

import type { ISettingRegistry } from "@jupyterlab/settingregistry";
import type { TranslationBundle } from "@jupyterlab/translation";
import { Signal } from "@lumino/signaling";

import type { Keep } from "./feedback.js";

export class Means {
  /** Emitted when the user has turned something on or off. */
  readonly changed = new Signal<this, void>(this);

  #settings: ISettingRegistry.ISettings | null = null;

  constructor(
    readonly trans: TranslationBundle,
    readonly keep: Keep | null,
  ) {}

  follow(settings: ISettingRegistry.ISettings): void {
    this.#settings = settings;
    settings.changed.connect(() => this.changed.emit());
    this.changed.emit();
  }

  get showsCards(): boolean {
    return this.#settings?.composite["enabled"] !== false;
  }

  get offersDiagnosis(): boolean {
    return this.showsCards && this.#settings?.composite["button"] !== false;
  }
}
