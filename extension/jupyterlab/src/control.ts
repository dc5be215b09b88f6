/** Questions on a kernel's control channel, which is served while a cell runs. */

import type { Kernel, KernelMessage } from "@jupyterlab/services";
import { KernelMessage as Message } from "@jupyterlab/services";

export type Control = Pick<
  Kernel.IKernelConnection,
  "isDisposed" | "clientId" | "username" | "sendControlMessage"
>;

export type Reply = Readonly<Record<string, unknown>>;

/**
 * Why there is no reply. gone: there is no kernel any more; unloaded: it serves the channel and knows nothing of us;
 * silent: it does not serve the channel, for something is holding the GIL; late: it knows us and took too long.
 */
export type Silence = "gone" | "unloaded" | "silent" | "late";

const OURS = "dtdebug_request";

/** A kernel without our extension is told from a slow one by a second message, which ours answers at once. */
const DOUBT_AFTER = 600;
const HELLO_LIMIT = 1_500;

/** Asks dtdebug's extension, and waits no longer than `limit` milliseconds; never rejects. */
export async function request(kernel: Control, content: object, limit: number): Promise<Reply | Silence> {
  const asked = new Exchange(kernel, OURS, content);
  try {
    const soon = await within(DOUBT_AFTER, asked.outcome);
    if (soon) {
      return soon;
    }
    const rest = within(limit - DOUBT_AFTER, asked.outcome);
    const doubt = asked.taken.then(async () => ((await knows(kernel)) ? rest : "unloaded"));
    return (await Promise.race([rest, doubt])) ?? (asked.isTaken ? "late" : "silent");
  } finally {
    asked.dispose();
  }
}

/** Asks the kernel itself; null where it does not answer. */
export async function demand(kernel: Control, type: string, content: object, limit: number): Promise<Reply | null> {
  const asked = new Exchange(kernel, type, content);
  try {
    const outcome = await within(limit, asked.outcome);
    return typeof outcome === "string" ? null : outcome;
  } finally {
    asked.dispose();
  }
}

/** Whether our extension is in a kernel that serves its control channel. */
async function knows(kernel: Control): Promise<boolean> {
  const hello = new Exchange(kernel, OURS, { kind: "hello" });
  try {
    return (await within(HELLO_LIMIT, hello.outcome)) !== null || !hello.isTaken;
  } finally {
    hello.dispose();
  }
}

/** What a promise gives; null after so many milliseconds. */
async function within<T>(limit: number, promise: Promise<T>): Promise<T | null> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), limit);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A message and what becomes of it. */
class Exchange {
  /** The reply, or that the kernel has ended. */
  readonly outcome: Promise<Reply | Silence>;
  /** The kernel has read the message: it publishes that it is idle again, whether it knows the message or not. */
  readonly taken: Promise<void>;
  isTaken = false;
  #future: { dispose(): void } | null = null;

  constructor(kernel: Control, type: string, content: object) {
    let take = () => {};
    let end = (_: Reply | Silence) => {};
    this.taken = new Promise((resolve) => (take = resolve));
    this.outcome = new Promise((resolve) => (end = resolve));
    try {
      if (kernel.isDisposed) {
        throw new Error("no kernel");
      }
      const future = kernel.sendControlMessage(message(kernel, type, content), true);
      this.#future = future;
      future.onReply = (reply) => end(reply.content as Reply);
      future.onIOPub = (published) => {
        if (Message.isStatusMsg(published) && published.content.execution_state === "idle") {
          this.isTaken = true;
          take();
        }
      };
      future.done.catch(() => end("gone"));
    } catch {
      end("gone"); // a dead kernel takes no message
    }
  }

  dispose(): void {
    this.#future?.dispose();
  }
}

/** Not all types are in JupyterLab's list. */
function message(kernel: Control, msgType: string, content: object): KernelMessage.IControlMessage {
  return Message.createMessage({
    msgType,
    channel: "control",
    session: kernel.clientId,
    username: kernel.username,
    content,
  } as unknown as KernelMessage.IOptions<KernelMessage.IDebugRequestMsg>);
}
