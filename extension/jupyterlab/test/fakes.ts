/** Kernels, servers and clocks of which tests say what they do. */

import { type TestContext } from "node:test";

import type { Kernel, ServerConnection } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";

export const trans = {
  __: (text: string, ...given: unknown[]) => given.reduce<string>((s, each, i) => s.replace(`%${i + 1}`, String(each)), text),
} as TranslationBundle;

type Content = Record<string, unknown>;

/** taken: reads the message and does not answer, as a kernel without our extension; silent: does not even read it. */
export type Behaviour = (content: Content) => Content | "taken" | "silent" | "restarts";

export interface FakeKernel extends Kernel.IKernelConnection {
  readonly sent: Content[];
}

export function kernel(behaves: Behaviour, changes: object = {}): FakeKernel {
  const sent: Content[] = [];
  return {
    id: "k1",
    status: "busy",
    connectionStatus: "connected",
    isDisposed: false,
    clientId: "c",
    username: "u",
    sent,
    sendControlMessage: (message: { content: Content; channel: string }) => {
      sent.push({ ...message.content, channel: message.channel });
      const future = { onReply: (_: unknown) => {}, onIOPub: (_: unknown) => {}, done: new Promise(() => {}), dispose() {} };
      const outcome = behaves(message.content);
      if (outcome === "restarts") {
        future.done = Promise.reject(new Error("Canceled future"));
      }
      queueMicrotask(() => {
        if (outcome !== "silent" && outcome !== "restarts") {
          future.onIOPub({ header: { msg_type: "status" }, content: { execution_state: "idle" } });
        }
        if (typeof outcome === "object") {
          future.onReply({ content: outcome });
        }
      });
      return future;
    },
    ...changes,
  } as unknown as FakeKernel;
}

export interface FakeServer extends ServerConnection.ISettings {
  readonly asked: { path: string; body: Content }[];
}

/** Answers with a status and JSON; a text is a page of a server without our part; null: can't be reached. */
export function server(answers: (path: string) => [number, object | string] | null): FakeServer {
  const asked: { path: string; body: Content }[] = [];
  return {
    baseUrl: "http://here/",
    init: {},
    token: "",
    Request,
    Headers,
    asked,
    fetch: async (request: Request) => {
      const path = new URL(request.url).pathname;
      asked.push({ path, body: (await request.json()) as Content });
      const answer = answers(path);
      if (!answer) {
        throw new TypeError("Failed to fetch");
      }
      const [status, body] = answer;
      return typeof body === "string"
        ? new Response(body, { status, headers: { "content-type": "text/html" } })
        : Response.json(body, { status });
    },
  } as unknown as FakeServer;
}

export const OFF = () => [404, "<html>"] as [number, string];

/** Lets time pass for what waits, in steps, with all that follows from each. */
export function clock(context: TestContext): (ms: number) => Promise<void> {
  context.mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_800_000_000_000 });
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return async (ms) => {
    for (let left = ms; left > 0; left -= 100) {
      await settle();
      context.mock.timers.tick(Math.min(100, left));
    }
    await settle();
  };
}
