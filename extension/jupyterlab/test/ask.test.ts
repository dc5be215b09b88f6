import assert from "node:assert/strict";
import { test } from "node:test";

import type { KernelMessage } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";

import { type Connection, ask, read, request } from "../src/ask.js";

const trans = {
  __: (text: string, ...given: unknown[]) => given.reduce<string>((s, each, i) => s.replace(`%${i + 1}`, String(each)), text),
} as TranslationBundle;
const QUESTION = { cell: "train()", output: "", ename: "RuntimeError", evalue: "boom", answers: {} };
const CARD = { diagnosis: { v: 1 }, loaded: false, told: true };

const reply = (result: unknown, status = "ok") =>
  ({ content: { status, user_expressions: { dtdebug: result } } }) as unknown as KernelMessage.IExecuteReplyMsg;
const failed = (ename: string, evalue: string) => reply({ status: "error", ename, evalue });
const card = reply({ status: "ok", data: { "text/plain": "<Reply>", "application/json": CARD } });

function kernel(done: () => Promise<unknown>, changes: object = {}): Connection {
  return {
    status: "idle",
    connectionStatus: "connected",
    isDisposed: false,
    info: Promise.resolve({ language_info: { name: "python" } }),
    requestExecute: () => ({ done: done() }),
    ...changes,
  } as unknown as Connection;
}

const line = async (asked: Connection | null) => {
  const answer = await ask(asked, QUESTION, trans);
  assert.ok("line" in answer);
  return answer.line;
};

test("the card is what the kernel's dtdebug says", async () => {
  assert.deepEqual(await ask(kernel(async () => card), QUESTION, trans), CARD);
});

test("no kernel, a dead one and one that can't be reached are a line that says what to do", async () => {
  const never = () => assert.fail("asked");
  assert.match(await line(null), /choose one in the menu Kernel/);
  assert.match(await line(kernel(never, { isDisposed: true })), /choose one/);
  assert.match(await line(kernel(never, { status: "dead" })), /has died: restart it/);
  assert.match(await line(kernel(never, { connectionStatus: "disconnected" })), /reconnect/);
});

test("a kernel of another language is told of", async () => {
  const info = Promise.resolve({ language_info: { name: "R" } });
  assert.match(await line(kernel(() => assert.fail("asked"), { info })), /this one runs R/);
});

test("a kernel that is restarted or dies before it answers is a line", async () => {
  const lost = async () => {
    throw new Error("Canceled future for execute_request message before replies were done");
  };
  assert.match(await line(kernel(lost)), /restarted before it answered/);
  const dying: { status: string } = { status: "idle" };
  const dies = kernel(async () => {
    dying.status = "dead";
    throw new Error("Kernel is dead");
  });
  Object.defineProperty(dies, "status", { get: () => dying.status });
  assert.match(await line(dies), /has died/);
});

test("a kernel without dtdebug is offered the line that installs it", () => {
  assert.deepEqual(read(failed("ModuleNotFoundError", "No module named 'dtdebug'"), trans), {
    line: "The kernel has no dtdebug; this line installs it:",
    source: '%pip install "dtdebug[notebook]"',
  });
});

test("an older dtdebug is offered its update, an incomplete one the rest", () => {
  const old = read(failed("ModuleNotFoundError", "No module named 'dtdebug.notebook.front_end_api'"), trans);
  const torn = read(failed("ModuleNotFoundError", "No module named 'msgspec'"), trans);
  assert.ok("source" in old && old.source?.includes("--upgrade"));
  assert.ok("line" in torn && torn.line.includes("not complete"));
});

test("what else goes wrong is named", () => {
  const why = (message: KernelMessage.IExecuteReplyMsg | undefined) => (read(message, trans) as { line: string }).line;
  assert.match(why(reply(undefined, "aborted")), /Another cell failed/);
  assert.match(why(failed("ValueError", "no such value")), /could not look at this: ValueError/);
  assert.match(why(undefined), /did not say why/);
  assert.match(why(reply({ status: "ok", data: { "text/plain": "1" } })), /did not say why/);
});

test("the request changes nothing in the kernel and holds text as text", () => {
  const hostile = `"'''\\\n') or __import__('os').abort() #\u2028\ud800`;
  const asked = request({ ...QUESTION, evalue: hostile });
  const expression = (asked.user_expressions as { dtdebug: string }).dtdebug;
  const literal = /^__import__\('dtdebug\.notebook\.front_end_api', fromlist=\['look'\]\)\.look\((.*)\)$/s.exec(expression)?.[1];

  assert.deepEqual([asked.code, asked.silent, asked.store_history, asked.stop_on_error], ["", true, false, false]);
  assert.equal(JSON.parse(JSON.parse(literal ?? "")).evalue, hostile.replace("\ud800", "\ufffd"));
});
