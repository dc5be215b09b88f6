import assert from "node:assert/strict";
import { test } from "node:test";

import { type Course, after, asked, back, begin, isLog, readCourse } from "../src/steps.js";

const FAILED = { id: "cell-1", number: "[2]", cell: "train()", output: "boom", ename: "RuntimeError", evalue: "boom" };
const answered = (value: string) => ({ kind: "answered", key: "nodes", value, ask: "How many hosts?", means: value }) as const;

test("what is asked follows from the failure and the steps; the latest answer counts", () => {
  let course = begin(FAILED);
  course = after(course, answered("one"));
  course = after(course, answered("many"));
  course = after(course, { kind: "skipped", key: "network", ask: "Which?" });
  course = after(course, { kind: "told", text: "it hangs after an hour" });
  course = after(course, { kind: "told", text: "Traceback (most recent call last):\nRuntimeError: x" });

  assert.deepEqual(asked(course), {
    cell: "train()",
    output: "boom\nTraceback (most recent call last):\nRuntimeError: x",
    ename: "RuntimeError",
    evalue: "boom",
    answers: { nodes: "many" },
    unknown: ["network"],
    situation: "it hangs after an hour",
  });
});

test("a question that was put aside takes its answer back, and Back gives it again", () => {
  const course = after(after(begin(FAILED), answered("one")), { kind: "skipped", key: "nodes", ask: "How many hosts?" });

  assert.deepEqual([{}, ["nodes"]], [asked(course).answers, asked(course).unknown]);
  assert.deepEqual([{ nodes: "one" }, []], [asked(back(course)).answers, asked(back(course)).unknown]);
  assert.deepEqual(back(back(back(course))).steps, []);
});

test("what is kept is bounded: the end of the output, where it failed", () => {
  const course = after(begin({ ...FAILED, output: `${"x".repeat(1_000_000)}end` }), { kind: "told", text: "y".repeat(1_000_000) });
  let long: Course = course;
  for (let i = 0; i < 500; i++) {
    long = after(long, answered("one"));
  }

  assert.ok(JSON.stringify(course).length < 60_000);
  assert.ok(course.subject?.output.endsWith("end"));
  assert.ok(long.steps.length <= 60);
});

test("a course that was kept is the same again; what is none is told from it", () => {
  const course = after(after(begin(FAILED), answered("one")), { kind: "told", text: "slow" });

  assert.deepEqual(readCourse(JSON.parse(JSON.stringify(course))), course);
  for (const broken of [undefined, null, 1, "x", [], {}, { ...course, v: 2 }, { ...course, steps: [{}] }, { ...course, at: "" }]) {
    assert.throws(() => readCourse(broken));
  }
});

test("a log is told from words", () => {
  assert.ok(isLog("[rank1]: NCCL WARN x"));
  assert.ok(isLog("Traceback (most recent call last):\n  File x"));
  assert.ok(isLog("torch.OutOfMemoryError: CUDA out of memory"));
  assert.ok(isLog("a\nb\nc\nd"));
  assert.ok(!isLog("loss is NaN after 300 steps on two hosts"));
});
