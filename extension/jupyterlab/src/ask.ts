/** Asks the kernel what a failed cell means: a silent request with one expression, which changes nothing in it. */

import type { Kernel, KernelMessage } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";

/** A failed cell as the notebook shows it; without `cell`, the failure that the kernel's extension knows. */
export interface Question {
  readonly cell: string;
  readonly output: string;
  readonly ename: string;
  readonly evalue: string;
  readonly answers: Readonly<Record<string, string>>;
}

/** What the kernel says of it. */
export interface Card {
  readonly diagnosis: unknown;
  /** The kernel runs dtdebug's extension: `%dtdebug` goes on from here. */
  readonly loaded: boolean;
  /** There is something to go by. */
  readonly told: boolean;
}

/** Why there is no card, and what to do; `source` is a cell that does it. */
export interface Line {
  readonly line: string;
  readonly source?: string;
}

export type Connection = Pick<
  Kernel.IKernelConnection,
  "status" | "connectionStatus" | "info" | "requestExecute" | "isDisposed"
>;

export const LOAD = "%load_ext dtdebug";
const INSTALL = '%pip install "dtdebug[notebook]"';
export const UPDATE = '%pip install --upgrade "dtdebug[notebook]"';
const NAME = "dtdebug";

/** Never rejects: what goes wrong is a line too. */
export async function ask(
  kernel: Connection | null | undefined,
  question: Question,
  trans: TranslationBundle,
): Promise<Card | Line> {
  const unable = unfit(kernel, trans);
  if (unable || !kernel) {
    return { line: unable };
  }
  try {
    const { language_info } = await kernel.info;
    if (language_info.name !== "python") {
      return { line: trans.__("dtdebug answers in Python kernels; this one runs %1.", language_info.name) };
    }
    return read(await kernel.requestExecute(request(question)).done, trans);
  } catch {
    return { line: unfit(kernel, trans) || trans.__("The kernel was restarted before it answered: try again.") };
  }
}

/** Why a kernel can't be asked now; "" if it can. */
export function unfit(kernel: Connection | null | undefined, trans: TranslationBundle): string {
  if (!kernel || kernel.isDisposed) {
    return trans.__("No kernel runs for this notebook: choose one in the menu Kernel, then try again.");
  }
  if (kernel.status === "dead" || kernel.status === "terminating") {
    return trans.__("The kernel has died: restart it in the menu Kernel, then try again.");
  }
  return kernel.connectionStatus === "disconnected"
    ? trans.__("The kernel can't be reached: reconnect in the menu Kernel, then try again.")
    : "";
}

/** What is sent. A text in JSON is a literal of Python too; halves of characters, which Python can't take, go. */
export function request(question: Question): KernelMessage.IExecuteRequestMsg["content"] {
  const literal = JSON.stringify(JSON.stringify(question).replace(/\\ud[89a-f][0-9a-f]{2}/gi, "\\ufffd"));
  return {
    code: "",
    silent: true,
    store_history: false,
    allow_stdin: false,
    stop_on_error: false,
    user_expressions: { [NAME]: `__import__('dtdebug.notebook.front_end_api', fromlist=['look']).look(${literal})` },
  };
}

interface Result {
  readonly status?: string;
  readonly data?: Readonly<Record<string, unknown>>;
  readonly ename?: string;
  readonly evalue?: string;
}

/** What a reply says. */
export function read(reply: KernelMessage.IExecuteReplyMsg | undefined, trans: TranslationBundle): Card | Line {
  const content = reply?.content as { status?: string; user_expressions?: Record<string, Result> } | undefined;
  if (content?.status === "aborted" || content?.status === "abort") {
    return { line: trans.__("Another cell failed before the kernel could answer: try again.") };
  }
  const result = content?.user_expressions?.[NAME];
  const card = result?.data?.["application/json"] as Card | undefined;
  if (card && typeof card === "object" && "diagnosis" in card) {
    return card;
  }
  if (result?.ename === "ModuleNotFoundError") {
    return /'dtdebug'/.test(result.evalue ?? "")
      ? { line: trans.__("The kernel has no dtdebug; this line installs it:"), source: INSTALL }
      : missing(result.evalue ?? "", trans);
  }
  return { line: trans.__("dtdebug could not look at this: %1", result?.ename ?? trans.__("the kernel did not say why")) };
}

/** An older dtdebug in the kernel, or one whose own packages are missing. */
function missing(message: string, trans: TranslationBundle): Line {
  return /'dtdebug\.[\w.]+'/.test(message)
    ? { line: trans.__("The kernel's dtdebug is too old; upgrade it with this line, then restart the kernel:"), source: UPDATE }
    : { line: trans.__("The kernel's dtdebug is not complete; this line installs the rest:"), source: INSTALL };
}
