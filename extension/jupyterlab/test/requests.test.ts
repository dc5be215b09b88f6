import assert from "node:assert/strict";
import { test } from "node:test";

import { type Asked, diagnose, endRanks, glance, leftBehind, look } from "../src/requests.js";
import { type Behaviour, OFF, clock, kernel, server, trans } from "./fakes.js";

const VIEW = { v: 1, hangs: true, line: "rank 0 waits 74 s in all_reduce #41" };
const SEEN = { status: "ok", text: "dtdebug: …", html: "", view: VIEW };
const OUTSIDE = { view: { ...VIEW, road: "outside" }, text: "from outside", report: "# all" };
const CARD = { status: "ok", diagnosis: { v: 1 }, loaded: true, told: true };
const ASKED: Asked = { cell: "", output: "", ename: "", evalue: "", answers: {}, situation: "it hangs", unknown: ["os"] };
const KINDS = { status: "error", ename: "ValueError", evalue: "kind is one of state, hang" };

/** A kernel with our extension: it says of what it does not know which kinds it knows. */
const loaded =
  (reply: ReturnType<Behaviour>): Behaviour =>
  ({ kind }) =>
    kind === "hello" ? KINDS : reply;
const never = () => assert.fail("asked");

test("the kernel itself is asked by its control channel", async () => {
  const asked = kernel(loaded(SEEN));
  assert.deepEqual(await look(asked, "hang", server(never), trans), { view: VIEW, text: "dtdebug: …", report: "" });
  assert.deepEqual(asked.sent, [{ kind: "hang", timeout: 3, channel: "control" }]);
});

test("a kernel without the extension is told from one that is slow", async (context) => {
  const pass = clock(context);
  const [without, slow] = [kernel(() => "taken"), kernel(loaded("taken"))];
  const answers = Promise.all([look(without, "hang", server(OFF), trans), look(slow, "hang", server(OFF), trans)]);
  await pass(7_000);
  const [first, second] = await answers;

  assert.ok("line" in first && "line" in second);
  assert.equal(first.source, "%load_ext dtdebug");
  assert.match(first.line, /has not loaded dtdebug/);
  assert.match(second.line, /took too long/);
});

test("a kernel that can't answer is looked at by the server, with the reason beside it", async (context) => {
  const pass = clock(context);
  const outside = server(() => [200, OUTSIDE]);
  const answer = look(
    kernel(() => "silent"),
    "hang",
    outside,
    trans,
  );
  await pass(7_000);
  const found = await answer;

  assert.ok("view" in found);
  assert.equal(found.report, "# all");
  assert.match(found.note?.line ?? "", /is holding the GIL/);
  assert.deepEqual(outside.asked, [{ path: "/dtdebug/api/kernels/k1/look", body: { kind: "hang", timeout: 5 } }]);
});

test("a kernel that has not loaded dtdebug is not asked, for that makes it seem to rest", async () => {
  const asked = kernel(loaded(SEEN));
  const found = await look(asked, "hang", server(() => [200, OUTSIDE]), trans, true);

  assert.ok("view" in found);
  assert.match(found.note?.line ?? "", /has not loaded dtdebug/);
  assert.deepEqual(asked.sent, []);
});

test("where neither can look, one line says why and what helps", async (context) => {
  const pass = clock(context);
  const lines = [OFF, () => null, () => [404, { message: "this server has no kernel k1" }] as [number, object]].map(
    async (answers) => {
      const found = await look(
        kernel(() => "silent"),
        "hang",
        server(answers),
        trans,
      );
      return "line" in found ? found.line : "";
    },
  );
  await pass(7_000);
  const [off, lost, told] = await Promise.all(lines);

  assert.match(off ?? "", /install "dtdebug\[lab\]"/);
  assert.match(lost ?? "", /did not answer in time/);
  assert.match(told ?? "", /this server has no kernel k1/);
});

test("a dead or restarted kernel and an old dtdebug are a line each", async () => {
  const line = async (...given: Parameters<typeof kernel>) => {
    const found = await look(kernel(...given), "state", server(OFF), trans);
    return "line" in found ? found : assert.fail("seen");
  };
  const dead = () => {
    throw new Error("Kernel is dead");
  };
  assert.match((await line(never, { isDisposed: true })).line, /choose one/);
  assert.match((await line(dead)).line, /has ended/);
  assert.match((await line(() => "restarts")).line, /has ended/);
  assert.match((await line(loaded({ status: "ok", text: "…" }))).source ?? "", /--upgrade/);
  assert.match((await line(loaded({ status: "error", ename: "OSError", evalue: "no" }))).line, /OSError: no/);
  assert.ok("line" in (await look(null, "state", server(never), trans)));
});

test("a glance asks the server alone, and null says that it has no part of ours", async () => {
  assert.equal(await glance("k1", server(OFF), trans), null);
  assert.ok("line" in ((await glance("k1", server(() => null), trans)) ?? {}));
  assert.ok("view" in ((await glance("k 1/..", server(() => [200, OUTSIDE]), trans)) ?? {}));
});

test("a diagnosis comes from the kernel, else from the text by the server, else by the shell", async (context) => {
  const pass = clock(context);
  const asked = kernel(loaded(CARD));
  const { diagnosis, loaded: isLoaded, told } = CARD;
  assert.deepEqual(await diagnose(asked, ASKED, server(never), trans), { diagnosis, loaded: isLoaded, told });
  assert.deepEqual(asked.sent[0]?.["asked"], ASKED);

  const text = server(() => [200, { diagnosis, loaded: false, told }]);
  const alone = await diagnose(null, ASKED, text, trans);
  assert.deepEqual(alone, { diagnosis, loaded: false, told });

  const executed: unknown[] = [];
  const idle = {
    status: "idle",
    info: Promise.resolve({ language_info: { name: "python" } }),
    requestExecute: (content: unknown) => {
      executed.push(content);
      return { done: Promise.resolve({ content: { status: "ok" } }) };
    },
  };
  const answers = [
    diagnose(kernel(() => "taken"), ASKED, text, trans),
    diagnose(kernel(() => "taken", idle), ASKED, server(OFF), trans),
  ];
  await pass(8_000);
  const [noted] = await Promise.all(answers);

  assert.ok(noted && "diagnosis" in noted);
  assert.equal(noted.note?.source, "%load_ext dtdebug");
  assert.equal(executed.length, 1);
});

test("ranks are ended by their process ids, and an old dtdebug can't", async () => {
  const asked = kernel(loaded({ status: "ok", ended: [7, 8], text: "ended processes 7-8" }));
  assert.deepEqual(await endRanks(asked, [7, 8], server(never), trans), { ended: [7, 8], text: "ended processes 7-8" });
  assert.deepEqual(asked.sent[0]?.["pids"], [7, 8]);

  const old = await endRanks(kernel(loaded(KINDS)), [7], server(never), trans);
  assert.match("line" in old ? (old.source ?? "") : "", /--upgrade/);
  assert.ok("line" in (await endRanks(null, [7], server(never), trans)));
});

test("where the kernel does not answer its server ends the ranks, and says what still runs of earlier cells", async (context) => {
  const pass = clock(context);
  const told = { end: { ended: [7], text: "ended process 7" }, left: { left: [{ line: "rank 0 is …", pids: [7, "x"] }] } };
  const replies = server((path) => [200, path.endsWith("/end") ? told.end : told.left]);
  const ending = endRanks(kernel(() => "silent"), [7], replies, trans);
  await pass(20_000);
  assert.deepEqual(await ending, { ended: [7], text: "ended process 7" });
  assert.deepEqual(await leftBehind("k1", replies), [{ line: "rank 0 is …", pids: [7] }]);
  assert.deepEqual(await leftBehind("k1", server(OFF)), []);
  const ended = server(() => [200, told.left]);
  assert.deepEqual(await leftBehind(null, ended), [{ line: "rank 0 is …", pids: [7] }]);
  assert.deepEqual(ended.asked, [{ path: "/dtdebug/api/abandoned", body: {} }]);
  assert.deepEqual(replies.asked, [
    { path: "/dtdebug/api/kernels/k1/end", body: { pids: [7] } },
    { path: "/dtdebug/api/kernels/k1/left", body: {} },
  ]);
});
