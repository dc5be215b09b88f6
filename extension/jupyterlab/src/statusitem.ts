/** Says in the status bar what hangs; where there is none, in a notification. */

import { Notification } from "@jupyterlab/apputils";
import type { IStatusBar } from "@jupyterlab/statusbar";
import type { TranslationBundle } from "@jupyterlab/translation";
import { Signal } from "@lumino/signaling";
import { Widget } from "@lumino/widgets";

import { make } from "../../shared/src/dom.js";
import type { Standing, Watches } from "./watches.js";

/** The look of our buttons in the status bar. */
export const STATUS = `
.dtdebug-stands { display: flex; }
.dtdebug-stands button { display: flex; align-items: center; gap: 5px; height: 100%; padding: 0 8px; border: 0; background: none;
  color: inherit; font: inherit; white-space: nowrap; cursor: pointer; }
.dtdebug-stands button > span { max-width: 60ch; overflow: hidden; text-overflow: ellipsis; }
.dtdebug-stands button:hover { background: var(--jp-layout-color3, rgba(127, 127, 127, .2)); }
.dtdebug-stands button:focus-visible { outline: 2px solid var(--jp-brand-color1, currentColor); outline-offset: -2px; }
.dtdebug-stands i { width: 8px; height: 8px; border-radius: 50%; background: var(--jp-warn-color1, #c77700); }
.dtdebug-stands [role="status"] { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
`;

/** A button whose seconds go on; a hidden line tells screen readers once, not every second. */
export class StatusItem extends Widget {
  readonly activeStateChanged = new Signal<this, void>(this);

  readonly #text = make("span", "");
  readonly #press = make("button", "", make("i", ""), this.#text);
  readonly #told = make("span", "");
  #timer: ReturnType<typeof setInterval> | undefined;
  #standing: Standing | null = null;

  constructor(
    private readonly watches: Watches,
    private readonly open: (standing: Standing) => void,
    private readonly trans: TranslationBundle,
  ) {
    super();
    this.addClass("dtdebug-stands");
    this.addClass("dtdebug-hangs");
    this.#press.type = "button";
    this.#press.addEventListener("click", () => this.#standing && this.open(this.#standing));
    this.#told.setAttribute("role", "status");
    this.node.append(make("style", "", STATUS), this.#press, this.#told);
    watches.changed.connect(this.#update, this);
    this.#update();
  }

  get isActive(): boolean {
    return this.#standing !== null;
  }

  override dispose(): void {
    clearInterval(this.#timer);
    this.watches.changed.disconnect(this.#update, this);
    super.dispose();
  }

  #update(): void {
    const before = this.#standing;
    this.#standing = this.watches.standing;
    if (Boolean(before) !== this.isActive) {
      clearInterval(this.#timer);
      this.#timer = this.isActive ? setInterval(() => this.#count(), 1_000) : undefined;
      this.activeStateChanged.emit();
    }
    this.#count();
    const line = this.#standing ? sentence(this.#standing, this.trans) : "";
    this.#told.textContent = line && `dtdebug: ${line}`;
    this.#press.title = line && `${line}\n${this.trans.__("Click to see where, and what can be done.")}`;
  }

  #count(): void {
    this.#text.textContent = this.#standing ? short(this.#standing, this.trans) : "";
  }
}

export function addStatusItem(
  bar: IStatusBar | null,
  watches: Watches,
  open: (standing: Standing) => void,
  trans: TranslationBundle,
): void {
  if (!bar) {
    notify(watches, open, trans);
    return;
  }
  const item = new StatusItem(watches, open, trans);
  bar.registerStatusItem("dtdebug:stands", {
    item,
    align: "left",
    rank: 100,
    priority: 1,
    isActive: () => item.isActive,
    activeStateChanged: item.activeStateChanged,
  });
}

/** Notebook 7 has no status bar. The notification goes when what hung goes on. */
function notify(watches: Watches, open: (standing: Standing) => void, trans: TranslationBundle): void {
  let shown: string | null = null;
  watches.changed.connect(() => {
    const { standing } = watches;
    if (standing && shown === null) {
      shown = Notification.warning(`dtdebug: ${short(standing, trans)}`, {
        autoClose: false,
        actions: [{ label: trans.__("Show"), callback: () => open(standing) }],
      });
    } else if (!standing && shown !== null) {
      Notification.dismiss(shown);
      shown = null;
    }
  });
}

function short({ watch }: Standing, trans: TranslationBundle): string {
  return watch.line || trans.__("a cell is not making progress");
}

/** The verdict's sentence. */
function sentence({ watch }: Standing, trans: TranslationBundle): string {
  const { verdict, line } = watch.seen?.view ?? {};
  return verdict?.summary || line || trans.__("A cell is not making progress.");
}
