import assert from "node:assert/strict";
import { test } from "node:test";

import type { IStateDB } from "@jupyterlab/statedb";

import { KEY, keeper } from "../src/feedback.js";

const SAID = { helped: true, symptom: "D.2.1", cause: "skipped-collective" };
const noon = () => new Date("2025-01-01T12:00:00Z");

function state(kept: unknown = undefined) {
  const all = new Map<string, unknown>([[KEY, kept]]);
  return { all, fetch: async (key: string) => all.get(key), save: async (key: string, value: unknown) => all.set(key, value) };
}

test("what a reader says is kept with its time", async () => {
  const db = state();
  const keep = keeper(db as unknown as IStateDB, noon);
  await keep(SAID);
  await keep({ ...SAID, helped: false });
  const at = "2025-01-01T12:00:00.000Z";
  assert.deepEqual(db.all.get(KEY), [{ ...SAID, at }, { ...SAID, helped: false, at }]);
});

test("the oldest go, and what is no list is replaced", async () => {
  const full = state(Array.from({ length: 300 }, (_, i) => i));
  await keeper(full as unknown as IStateDB, noon)(SAID);
  assert.equal((full.all.get(KEY) as unknown[]).length, 200);
  const broken = state("broken");
  await keeper(broken as unknown as IStateDB, noon)(SAID);
  assert.equal((broken.all.get(KEY) as unknown[]).length, 1);
});
