/** Ranks of earlier cells that still run, in all notebooks of this server: who they are, what they hold, and an end to them. */

import type { Session, ServerConnection } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";

import { button, make, status } from "../../shared/src/dom.js";
import { confirmed } from "./choices.js";
import { type Left, endOutside, leftBehind } from "./requests.js";

/** Milliseconds from one time that it is asked to the next, once something has happened: a busy kernel that is restarted
 * takes seconds to end. Then as often as ranks are known, which may end by themselves. */
const PAUSES = [700, 4_000];
const AGAIN = 10_000;

interface Found extends Left {
  /** Null: of a kernel that has ended. */
  readonly kernel: string | null;
  readonly path: string | null;
}

/** Asks only while it is seen: `look` says that something may have changed. */
export class LeftBehind {
  readonly node = make("div", "dtdp-left");

  readonly #rows = make("div", "");
  readonly #told = status();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #drawn = "";
  /** Times that it was asked since something has happened. */
  #asked = 0;
  #isDisposed = false;

  constructor(
    private readonly sessions: Session.IManager,
    private readonly server: ServerConnection.ISettings,
    private readonly trans: TranslationBundle,
    private readonly isSeen: () => boolean,
    private readonly current: () => string,
  ) {
    this.node.append(this.#rows, this.#told);
    this.node.setAttribute("role", "group");
    this.node.setAttribute("aria-label", trans.__("Ranks of earlier cells"));
    sessions.runningChanged.connect(this.look, this);
  }

  dispose(): void {
    this.#isDisposed = true;
    clearTimeout(this.#timer);
    this.sessions.runningChanged.disconnect(this.look, this);
  }

  look(): void {
    this.#asked = 0;
    this.#plan();
  }

  #plan(pause = PAUSES[this.#asked] ?? AGAIN): void {
    clearTimeout(this.#timer);
    if (!this.#isDisposed && this.isSeen()) {
      this.#timer = setTimeout(() => void this.#ask(), pause);
    }
  }

  async #ask(): Promise<void> {
    if (!this.isSeen()) {
      return;
    }
    const ended = await leftBehind(null, this.server);
    const found: Found[] = ended.map((left) => ({ ...left, path: null, kernel: null }));
    for (const { path, kernel } of [...this.sessions.running()]) {
      if (kernel) {
        found.push(...(await leftBehind(kernel.id, this.server)).map((left) => ({ ...left, path, kernel: kernel.id })));
      }
    }
    if (this.#isDisposed) {
      return;
    }
    const drawn = JSON.stringify([found, this.current()]);
    if (drawn !== this.#drawn) {
      this.#drawn = drawn;
      this.#rows.replaceChildren(...found.map((each) => this.#row(each)));
    }
    this.#asked += 1;
    if (found.length || this.#asked <= PAUSES.length) {
      this.#plan();
    }
  }

  #row(found: Found): HTMLElement {
    const { trans } = this;
    const line = sentence(found.line);
    const said = found.path === null || found.path === this.current() ? line : trans.__("%1: %2", found.path, line);
    if (found.pids.length === 0) {
      return make("div", "dtdp-row", make("span", "", said)); // the kernel has died: nothing is left to end
    }
    const end = button(trans.__("End them …"), () => void this.#end(found), trans.__("End them: %1", said));
    return make("div", "dtdp-row", make("span", "", said), end);
  }

  async #end({ kernel, pids, line }: Found): Promise<void> {
    const { trans } = this;
    const told = [sentence(line), pids.join(", ")];
    const sure = await confirmed(
      trans.__("End these ranks?"),
      kernel === null
        ? trans.__("%1 These processes get SIGTERM, and SIGKILL after three seconds: %2. What they have not saved is lost.", ...told)
        : trans.__("%1 These processes get SIGTERM, and SIGKILL after three seconds: %2. What they have not saved is lost. The kernel stays and keeps its variables.", ...told),
      trans.__("End the ranks"),
      trans,
    );
    if (sure) {
      this.#told.textContent = trans.__("Ending …");
      const answer = await endOutside(kernel, pids, this.server, trans);
      const failed = !("line" in answer);
      this.#told.textContent = failed ? sentence(answer.text) : answer.line;
      this.#asked = 0;
      this.#plan(0);
    }
  }
}

function sentence(text: string): string {
  return text && `${text[0]?.toUpperCase()}${text.slice(1)}.`;
}
