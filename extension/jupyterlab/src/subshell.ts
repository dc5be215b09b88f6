/** The wizard beside a running cell: its widgets are made in a subshell, so that they answer while the kernel is busy. */

import type { NotebookPanel } from "@jupyterlab/notebook";
import { OutputAreaModel, SimplifiedOutputArea } from "@jupyterlab/outputarea";
import { type Kernel, KernelMessage } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";
import { Signal } from "@lumino/signaling";
import { Panel, Widget } from "@lumino/widgets";

import { button, make, status } from "../../shared/src/dom.js";
import { demand } from "./control.js";

const WIZARD = "%dtdebug";
const STARTS_WITHIN = 4_000;

/** Shows what `%dtdebug` shows in a subshell; closing it deletes the subshell. */
export class Beside extends Panel {
  readonly #told = status();
  #kernel: Kernel.IKernelConnection | null = null;
  #subshell: string | null = null;

  constructor(
    private readonly panel: NotebookPanel,
    private readonly trans: TranslationBundle,
  ) {
    super();
    this.addClass("dtdebug-beside");
    const close = button(trans.__("Close"), () => this.dispose(), trans.__("Close the wizard"));
    const head = make("div", "dtd dtd-feedback", make("strong", "", trans.__("Wizard while the cell runs")), close, this.#told);
    this.addWidget(new Widget({ node: head }));
    panel.disposed.connect(this.dispose, this);
    panel.sessionContext.kernelChanged.connect(this.dispose, this);
    panel.sessionContext.statusChanged.connect(this.#follow, this);
    void this.#start();
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    ended(this.#kernel, this.#subshell);
    Signal.disconnectReceiver(this);
    super.dispose();
  }

  /** What was in the subshell ends with the kernel. */
  #follow(_: unknown, status: Kernel.Status): void {
    if (status === "restarting" || status === "autorestarting" || status === "dead") {
      this.dispose();
    }
  }

  async #start(): Promise<void> {
    const { trans } = this;
    const kernel = this.panel.sessionContext.session?.kernel;
    if (!kernel || kernel.isDisposed) {
      this.#say(trans.__("No kernel runs for this notebook."));
      return;
    }
    this.#say(trans.__("Starting …"));
    const subshell = await created(kernel);
    if (this.isDisposed) {
      ended(kernel, subshell);
      return;
    }
    if (!subshell) {
      this.#say(
        trans.__(
          "The kernel has no subshells (ipykernel 7 has), or a call in its cell is holding the GIL; when the cell has ended, %1 asks the same.",
          WIZARD,
        ),
      );
      return;
    }
    [this.#kernel, this.#subshell] = [kernel, subshell];
    const area = new SimplifiedOutputArea({
      model: new OutputAreaModel({ trusted: true }),
      rendermime: this.panel.content.rendermime,
    });
    this.addWidget(area);
    area.future = execute(kernel, subshell);
    area.future.done.catch(() => undefined); // the kernel was restarted: this is disposed of
    this.#say("");
  }

  #say(text: string): void {
    this.#told.textContent = text;
  }
}

/** A new subshell; null if the kernel has none, or does not answer. A page loaded meanwhile can't know which. */
async function created(kernel: Kernel.IKernelConnection): Promise<string | null> {
  const reply = await demand(kernel, "create_subshell_request", {}, STARTS_WITHIN);
  return typeof reply?.["subshell_id"] === "string" ? reply["subshell_id"] : null;
}

/** A subshell is a thread of the kernel: it must not outlive what it was made for. */
function ended(kernel: Kernel.IKernelConnection | null, subshell: string | null): void {
  if (kernel && !kernel.isDisposed && subshell) {
    void demand(kernel, "delete_subshell_request", { subshell_id: subshell }, STARTS_WITHIN);
  }
}

/** JupyterLab's own function takes the shell of the whole connection. */
function execute(
  kernel: Kernel.IKernelConnection,
  subshellId: string,
): Kernel.IShellFuture<KernelMessage.IExecuteRequestMsg, KernelMessage.IExecuteReplyMsg> {
  const message = KernelMessage.createMessage<KernelMessage.IExecuteRequestMsg>({
    msgType: "execute_request",
    channel: "shell",
    username: kernel.username,
    session: kernel.clientId,
    subshellId,
    content: {
      code: WIZARD,
      silent: false,
      store_history: false,
      user_expressions: {},
      allow_stdin: false,
      stop_on_error: false,
    },
  });
  return kernel.sendShellMessage(message, true, false) as Kernel.IShellFuture<
    KernelMessage.IExecuteRequestMsg,
    KernelMessage.IExecuteReplyMsg
  >;
}
