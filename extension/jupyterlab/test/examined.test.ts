import assert from "node:assert/strict";
import { test } from "node:test";

import { latest, readExamined } from "../src/examined.js";

const ANSWER = { v: 1, at: "2026-11-23T10:00:00+00:00", state: "fault", line: "1 host, gloo: 1 fault", findings: ["no room DR511"] };

test("what doctor has said is read, and only that", () => {
  const { v: _, ...expected } = ANSWER;
  assert.deepEqual(readExamined(ANSWER), expected);
  for (const data of [null, undefined, "text", [], { ...ANSWER, v: 2 }, { ...ANSWER, at: "soon" }, { ...ANSWER, state: "x" }, { ...ANSWER, line: {} }]) {
    assert.equal(readExamined(data), null);
  }
  const more = readExamined({ ...ANSWER, line: "x".repeat(9_999), findings: [{}, "a", "b", "c".repeat(9_999), "d"] });
  assert.equal(more?.line.length, 300);
  assert.deepEqual(more?.findings.map((text) => text.length), [1, 1, 300]);
  assert.deepEqual(readExamined({ ...ANSWER, findings: "none" })?.findings, []);
});

test("the latest of several answers counts, of two at once the lower one", () => {
  const at = (time: string, line: string) => ({ examined: { at: time, state: "ok", line, findings: [] } as const });
  const all = [at("2026-11-23T11:00:00Z", "a"), at("2026-11-23T10:00:00Z", "b"), at("2026-11-23T12:00:00+01:00", "c")];
  assert.equal(latest(all)?.examined.line, "c");
  assert.equal(latest([]), null);
});
