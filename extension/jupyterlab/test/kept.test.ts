import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import statedb from "@jupyterlab/statedb";

import { type Entry, added, readEntries } from "../src/entries.js";
import { Corrupted, Kept, browserState } from "../src/kept.js";

const SAMPLE = JSON.parse(readFileSync(new URL("../../../../shared/test/samples/settled.json", import.meta.url), "utf8")) as object;
const NOON = "2025-01-01T12:00:00.000Z";
const entry = (id: string, diagnosis: unknown = SAMPLE): Entry => ({ id, at: NOON, number: `[${id}]`, diagnosis });

function text(data: unknown): string {
  if (typeof data !== "string") {
    throw new Error("no text");
  }
  return data;
}

test("what is kept of a notebook goes with its name", async () => {
  const kept = new Kept(new statedb.StateDB(), "x", text);
  await kept.save("a.ipynb", "mine");
  await kept.move("a.ipynb", "b.ipynb");
  await kept.move("none.ipynb", "b.ipynb");

  assert.deepEqual([await kept.fetch("a.ipynb"), await kept.fetch("b.ipynb")], [null, "mine"]);
  await kept.remove("b.ipynb");
  assert.equal(await kept.fetch("b.ipynb"), null);
});

test("what can't be read is told of, and is replaced", async () => {
  const state = new statedb.StateDB();
  await state.save("x:a.ipynb", { kept: 3 });
  await state.save("x:b.ipynb", "broken");
  const kept = new Kept(state, "x", text);

  await assert.rejects(kept.fetch("a.ipynb"), Corrupted);
  await assert.rejects(kept.fetch("b.ipynb"), Corrupted);
  await kept.change("a.ipynb", (before) => before ?? "new");
  assert.equal(await kept.fetch("a.ipynb"), "new");
});

test("changes come one after the other, and a failed one stops none", async () => {
  const kept = new Kept(new statedb.StateDB(), "x", text);
  const fails = kept.change("a", () => {
    throw new Error("no");
  });
  await Promise.all([assert.rejects(fails), ...["1", "2", "3"].map((each) => kept.change("a", (before) => `${before ?? ""}${each}`))]);

  assert.equal(await kept.fetch("a"), "123");
});

test("notebooks that nobody opens any more are forgotten", async () => {
  const state = new statedb.StateDB();
  await state.save("other:a", "theirs");
  for (let i = 10; i < 40; i++) {
    await state.save(`x:${i}`, { at: `20${i}`, kept: "old" });
  }
  await new Kept(state, "x", text).save("new", "mine");

  const { ids } = await state.list("x");
  assert.equal(ids.length, 20);
  assert.ok(ids.includes("x:new") && ids.includes("x:39") && !ids.includes("x:10"));
  assert.equal(await state.fetch("other:a"), "theirs");
});

test("where the state ends with the page, the browser keeps it", async () => {
  const items = new Map<string, string>();
  const storage = new Proxy({} as Storage, {
    get: (_, name) =>
      ({
        getItem: (key: string) => items.get(key) ?? null,
        setItem: (key: string, value: string) => void items.set(key, value),
        removeItem: (key: string) => void items.delete(key),
      })[name as "getItem"],
    ownKeys: () => [...items.keys()],
    getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
  });
  items.set("theirs", "{");
  await new Kept(browserState(storage, "/"), "x", text).save("a", "mine");
  const again = new Kept(browserState(storage, "/"), "x", text);

  assert.equal(await again.fetch("a"), "mine");
  assert.equal(await new Kept(browserState(storage, "/other/"), "x", text).fetch("a"), null);
  await again.remove("a");
  assert.deepEqual([...items.keys()], ["theirs"]);
});

test("a history is newest first; a diagnosis that grows stays one", () => {
  const all = [entry("a"), entry("b"), entry("a")].reduce(added, [] as readonly Entry[]);

  assert.deepEqual(all.map((each) => each.id), ["a", "b"]);
  assert.deepEqual(readEntries(JSON.parse(JSON.stringify(all))), all);
});

test("the wizard's diagnosis of a cell takes the place of its card; another run of it does not", () => {
  const card = entry("cell@12:00");
  const wizard = { ...entry("wizard"), number: card.number };
  const later = { ...entry("cell@12:05"), number: "[7]" };

  assert.deepEqual([card, wizard, later].reduce(added, [] as readonly Entry[]).map((each) => each.id), ["cell@12:05", "wizard"]);
});

test("a history is bounded, and holds what a card shows and no more", () => {
  let all: readonly Entry[] = [];
  for (let i = 0; i < 200; i++) {
    all = added(all, entry(String(i), { ...SAMPLE, secret: "x".repeat(1_000) }));
  }

  assert.equal(all[0]?.id, "199");
  assert.ok(all.length >= 20 && all.length <= 50, String(all.length));
  assert.ok(JSON.stringify(all).length < 210_000);
  assert.ok(!JSON.stringify(all).includes("secret"));
});

test("what says nothing is not kept, and no history is none", () => {
  for (const each of [null, {}, "x", { ...SAMPLE, verdict: "unknown" }]) {
    assert.deepEqual(added([], entry("a", each)), []);
  }
  for (const broken of [undefined, {}, "x", [null], [{ id: 1 }], [{ id: "a", at: "never" }]]) {
    assert.throws(() => readEntries(broken));
  }
});
