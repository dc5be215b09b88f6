import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import { Signal } from "@lumino/signaling";

import type { Line } from "../src/ask.js";
import type { Look } from "../src/requests.js";
import { type Cells, type Running, Watch, counted } from "../src/watch.js";
import { clock } from "./fakes.js";

const LINE = "rank 0 waits 4 s in all_reduce #41";
const seen = (hangs: boolean | null, ranks = 2, line = ""): Look => ({
  view: { hangs, line, cell: { number: 3 }, rows: Array.from({ length: ranks }, (_, rank) => ({ rank })) },
  text: "",
  report: "",
});

class Cell implements Cells {
  readonly changed = new Signal<this, void>(this);
  quietSince: number;
  asksUser = false;
  isDisposed = false;
  constructor(public running: Running = "yes") {
    this.quietSince = running === "perhaps" ? 0 : Date.now();
  }

  turn(running: Running): void {
    this.running = running;
    this.print();
  }
  print(): void {
    this.quietSince = Date.now();
    this.changed.emit();
  }
  dispose(): void {
    this.isDisposed = true;
  }
}

interface Answers {
  glance: Look | Line | null;
  hang: Look | Line;
}

function watched(context: TestContext, answers: Answers, running: Running = "yes", hangAfter = 20) {
  const pass = clock(context);
  const cell = new Cell(running);
  const asked: string[] = [];
  const watch = new Watch(
    cell,
    {
      glance: async () => (asked.push("glance"), answers.glance),
      look: async (kind) => (asked.push(kind), answers.hang),
    },
    () => ({ hangAfter }),
  );
  return { pass, cell, asked, watch };
}

test("nobody is asked while no cell runs, nor while it prints", async (context) => {
  const { pass, cell, asked } = watched(context, { glance: seen(null), hang: seen(true) }, "no");
  await pass(60_000);
  cell.turn("yes");
  for (let i = 0; i < 10; i++) {
    await pass(10_000);
    cell.print();
  }
  cell.turn("no");
  await pass(60_000);

  assert.deepEqual(asked, []);
});

test("a silent cell is glanced at more and more seldom; a kernel without ranks is never asked", async (context) => {
  const { pass, asked, watch } = watched(context, { glance: seen(null, 0), hang: seen(true) });
  await pass(120_000);

  assert.deepEqual([...new Set(asked)], ["glance"]);
  assert.ok(asked.length >= 7 && asked.length <= 9, String(asked.length));
  assert.equal(watch.stands, false);
  assert.equal(watch.line, "");
});

test("the kernel is asked once where the server can't tell, and once more when it sees a hang", async (context) => {
  const answers: Answers = { glance: seen(null), hang: seen(null) };
  const { pass, asked, watch } = watched(context, answers);
  await pass(60_000);
  assert.equal(asked.filter((each) => each === "hang").length, 1);
  assert.equal(watch.stands, false);

  answers.glance = seen(true, 2, "rank 0 waits");
  answers.hang = seen(true, 2, LINE);
  await pass(60_000);
  assert.equal(asked.filter((each) => each === "hang").length, 2);
  assert.equal(watch.stands, true);
});

test("a kernel that has looked too early is asked again while the server goes on seeing a hang", async (context) => {
  const answers = { glance: seen(true), hang: seen(false) };
  const { pass, asked, watch } = watched(context, answers);
  await pass(45_000);
  assert.equal(asked.filter((each) => each === "hang").length, 1);
  assert.equal(watch.stands, false);

  answers.hang = seen(true, 2, LINE);
  await pass(30_000);
  assert.equal(asked.filter((each) => each === "hang").length, 2);
  assert.equal(watch.stands, true);
});

test("a kernel that was too busy to answer is asked again: from outside its ranks can't be ended", async (context) => {
  const outside = seen(true, 2, LINE);
  const answers = { glance: outside, hang: { ...outside, view: { ...outside.view, road: "outside" } } } as { glance: Look; hang: Look };
  const { pass, asked, watch } = watched(context, answers);
  await pass(21_000);
  assert.deepEqual([watch.stands, watch.seen?.view.road], [true, "outside"]);

  answers.hang = { ...outside, view: { ...outside.view, road: "kernel" } };
  await pass(60_000);
  assert.equal(asked.filter((each) => each === "hang").length, 2);
  assert.equal(watch.seen?.view.road, "kernel");
});

test("the seconds go on without requests, until the cell prints", async (context) => {
  const { pass, cell, asked, watch } = watched(context, { glance: seen(true), hang: seen(true, 2, LINE) });
  await pass(20_100);
  const before = asked.length;
  assert.equal(watch.line, LINE);
  await pass(4_000);
  assert.equal(watch.line, "rank 0 waits 8 s in all_reduce #41");
  assert.equal(asked.length, before);

  cell.print();
  assert.deepEqual([watch.stands, watch.line], [false, ""]);
});

test("what was asked before a sign of life tells nothing after it", async (context) => {
  let answer: (look: Look) => void = () => {};
  const pass = clock(context);
  const cell = new Cell();
  const look = () => new Promise<Look>((resolve) => (answer = resolve));
  const watch = new Watch(cell, { glance: async () => seen(true), look }, () => ({ hangAfter: 20 }));
  await pass(21_000);
  cell.print();
  answer(seen(true, 2, LINE));
  await pass(100);

  assert.equal(watch.stands, false);
});

test("a server without our part is asked once, the kernel alone then more and more seldom", async (context) => {
  const { pass, asked, watch } = watched(context, { glance: null, hang: seen(true, 2, LINE) });
  await pass(300_000);

  assert.equal(asked.filter((each) => each === "glance").length, 1);
  assert.equal(asked.filter((each) => each === "hang").length, 5);
  assert.equal(watch.stands, true);
});

test("a server that can't look at this kernel leaves it to the kernel", async (context) => {
  const { pass, asked, watch } = watched(context, { glance: { line: "elsewhere" }, hang: seen(true, 2, LINE) });
  await pass(21_000);

  assert.deepEqual(asked, ["glance", "hang"]);
  assert.equal(watch.stands, true);
});

test("what the server sees stands where the kernel does not answer, with the reason", async (context) => {
  const trouble = { line: "no answer" };
  const { pass, watch } = watched(context, { glance: seen(true, 2, LINE), hang: trouble });
  await pass(21_000);

  assert.deepEqual([watch.stands, watch.trouble], [true, trouble]);
  assert.match(watch.line, /rank 0 waits \d s/);
});

test("a page that was loaded while the cell ran asks at once", async (context) => {
  const { pass, asked, watch } = watched(context, { glance: seen(true), hang: seen(true, 2, LINE) }, "perhaps");
  await pass(100);

  assert.deepEqual(asked, ["glance", "hang"]);
  assert.equal(watch.stands, true);
});

test("what another page runs is watched like a cell; where nothing is found, nearly nobody is asked", async (context) => {
  const nothing = { ...seen(null, 0), view: { hangs: null } };
  const { pass, asked, cell } = watched(context, { glance: nothing, hang: seen(null) }, "perhaps");
  cell.print();
  await pass(19_000);
  assert.deepEqual(asked, []);
  await pass(200_000);
  assert.deepEqual(asked, ["glance"]);
});

test("keep waiting is five quiet minutes, or until the cell ends", async (context) => {
  const { pass, cell, asked, watch } = watched(context, { glance: seen(true), hang: seen(true, 2, LINE) });
  await pass(21_000);
  watch.keepWaiting();
  const before = asked.length;
  await pass(299_000);
  assert.deepEqual([watch.stands, asked.length], [false, before]);
  await pass(2_000);
  assert.equal(watch.stands, true);

  watch.keepWaiting();
  cell.turn("no");
  cell.turn("yes");
  await pass(21_000);
  assert.equal(watch.stands, true);
});

test("a cell that waits for its user, and a setting that is off, ask nobody", async (context) => {
  const { pass, cell, asked } = watched(context, { glance: seen(true), hang: seen(true) });
  cell.asksUser = true;
  await pass(60_000);
  assert.deepEqual(asked, []);
});

test("with the setting off nobody is asked", async (context) => {
  const { pass, asked } = watched(context, { glance: seen(true), hang: seen(true) }, "yes", 0);
  await pass(60_000);
  assert.deepEqual(asked, []);
});

test("a disposed watch asks nobody and lets go of its cells", async (context) => {
  const { pass, cell, asked, watch } = watched(context, { glance: seen(true), hang: seen(true) });
  watch.dispose();
  cell.print();
  await pass(60_000);

  assert.deepEqual([asked, cell.isDisposed], [[], true]);
});

test("a user who looks is told what is seen, also while no cell runs", async (context) => {
  const { asked, watch } = watched(context, { glance: null, hang: seen(false) }, "no");
  const looking = watch.refresh("state");
  assert.equal(watch.isAsking, true);
  await looking;

  assert.deepEqual([asked, watch.isAsking, watch.stands], [["state"], false, false]);
  assert.equal(watch.seen?.view.rows?.length, 2);
});

test("time is told in minutes where it is long", () => {
  assert.equal(counted("ranks 0-2 wait 74 s in all_reduce #41 for rank 3", 10.9), "ranks 0-2 wait 84 s in all_reduce #41 for rank 3");
  assert.equal(counted("rank 0 waits 590 s in barrier", 20), "rank 0 waits 10 min in barrier");
  assert.equal(counted("rank 0 waits 12 min in barrier", 130), "rank 0 waits 14 min in barrier");
  assert.equal(counted("The GIL is held", 3), "The GIL is held");
});
