/** Whether cells of a notebook run, by what this page has sent and what the kernel publishes, never by its busy flag. */

import type { Cell, ICodeCellModel } from "@jupyterlab/cells";
import { type Notebook, NotebookActions, type NotebookPanel } from "@jupyterlab/notebook";
import type { Kernel, KernelMessage } from "@jupyterlab/services";
import { Signal } from "@lumino/signaling";

import type { Cells, Running } from "./watch.js";

/** A kernel that has not told about itself by then runs a cell of which this page knows nothing. */
const ANSWERS_WITHIN = 5_000;

export class Runs implements Cells {
  /** Something has begun or ended, or has given a sign of life. */
  readonly changed = new Signal<this, void>(this);

  readonly #cells = new Set<Cell>();
  /** Requests of other pages that the kernel works on. */
  readonly #others = new Set<string>();
  #last: Cell | null = null;
  #unknown = false;
  #since = Date.now();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly panel: NotebookPanel) {
    const { sessionContext } = panel;
    NotebookActions.executionScheduled.connect(this.#scheduled, this);
    NotebookActions.executed.connect(this.#executed, this);
    sessionContext.kernelChanged.connect(this.#renewed, this);
    sessionContext.statusChanged.connect(this.#status, this);
    sessionContext.iopubMessage.connect(this.#published, this);
    this.#greet();
  }

  dispose(): void {
    clearTimeout(this.#timer);
    Signal.clearData(this);
  }

  get running(): Running {
    return this.#cells.size ? "yes" : this.#others.size || this.#unknown ? "perhaps" : "no";
  }

  /** The cell that runs, also where another page of the document has sent it, or ran last of those that this one has. */
  get cell(): Cell | null {
    const [first] = this.#cells;
    return first ?? this.panel.content.widgets.find(isRunning) ?? this.#last;
  }

  get quietSince(): number {
    return this.#since;
  }

  /** A cell that asks the user for input waits for nobody else. */
  get asksUser(): boolean {
    return this.panel.sessionContext.pendingInput;
  }

  #scheduled(_: unknown, { notebook, cell }: { notebook: Notebook; cell: Cell }): void {
    if (notebook === this.panel.content && cell.model.type === "code") {
      this.#cells.add(cell);
      this.#live();
    }
  }

  #executed(_: unknown, { cell }: { cell: Cell }): void {
    if (this.#cells.delete(cell)) {
      this.#last = cell;
      this.#live();
    }
  }

  /** Another kernel, or the same after a restart: what ran before runs no more. */
  #renewed(): void {
    this.#cells.clear();
    this.#others.clear();
    this.#greet();
    this.#live();
  }

  /** A kernel that runs a cell already does not tell about itself before that has ended. */
  #greet(): void {
    clearTimeout(this.#timer);
    this.#unknown = false;
    const kernel = this.panel.isDisposed ? null : this.panel.sessionContext.session?.kernel;
    if (!kernel) {
      return;
    }
    const silent = setTimeout(() => {
      if (!kernel.isDisposed && kernel.status !== "starting") {
        this.#unknown = true;
        this.#live(0);
      }
    }, ANSWERS_WITHIN);
    const told = () => {
      clearTimeout(silent);
      if (this.#unknown && silent === this.#timer) {
        this.#unknown = false;
        this.#live();
      }
    };
    this.#timer = silent;
    kernel.info.then(told, told);
  }

  #status(_: unknown, status: Kernel.Status): void {
    if (status === "restarting" || status === "autorestarting" || status === "dead" || status === "terminating") {
      this.#renewed();
    }
  }

  /** All that cells publish is a sign of life; what subshells and our own requests publish is not. */
  #published(_: unknown, message: KernelMessage.IMessage): void {
    const parent = message.parent_header as Partial<KernelMessage.IHeader> & { subshell_id?: string | null };
    if (parent.msg_type !== "execute_request" || parent.subshell_id || !parent.msg_id) {
      return;
    }
    const isStatus = message.header.msg_type === "status";
    const isBusy = isStatus && (message.content as { execution_state?: string }).execution_state === "busy";
    if (isStatus && parent.session !== this.panel.sessionContext.session?.kernel?.clientId) {
      this.#others[isBusy ? "add" : "delete"](parent.msg_id);
    }
    if (!isBusy) { // the kernel repeats it after each look; what a cell has begun publishes more
      this.#live();
    }
  }

  #live(since = Date.now()): void {
    this.#since = since;
    this.changed.emit();
  }
}

function isRunning({ model }: Cell): boolean {
  return model.type === "code" && (model as ICodeCellModel).executionState === "running";
}
