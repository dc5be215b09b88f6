import assert from "node:assert/strict";
import { test } from "node:test";

import "./browser.js";
import { columns, markAt } from "../../src/ranks/columns.js";
import { cellAt, layout } from "../../src/ranks/layout.js";
import { read, type ShownTimeline } from "../../src/ranks/read.js";
import { bytes, duration, elapsed, placeName, rankNames, ranges, stateWord } from "../../src/ranks/words.js";

const WIDTH = 300;

test("few ranks have text, more a number, thousands a dot", () => {
  assert.deepEqual(
    ["full", "full", "short", "dots", "dots"],
    [1, 8, 64, 512, 4_096].map((count) => layout(count, WIDTH).size),
  );
});

test("every number of ranks fits in any width of a panel", () => {
  for (const width of [40, 200, 300, 400, 1_600]) {
    for (const count of [0, 1, 2, 7, 8, 9, 16, 100, 255, 1_024, 4_096, 16_384]) {
      const at = layout(count, width);

      assert.ok(at.columns * at.width <= width, `${count} in ${width}: ${JSON.stringify(at)}`);
      assert.ok(at.columns * at.rows >= count);
      assert.ok(at.width - at.gap > 0);
    }
  }
});

test("the eight ranks of a host stand in one row of dots", () => {
  for (const count of [512, 4_096]) {
    assert.equal(0, layout(count, WIDTH).columns % 8);
  }
});

test("the cell under a point is found, and none beside the cells", () => {
  const at = layout(4_096, WIDTH);
  const middle = at.width / 2;

  assert.equal(0, cellAt(at, 4_096, middle, middle));
  assert.equal(at.columns + 2, cellAt(at, 4_096, 2 * at.width + middle, at.height + middle));
  assert.equal(null, cellAt(at, 4_096, at.columns * at.width + 1, middle));
  assert.equal(null, cellAt(at, 4_096, -1, middle));
  assert.equal(null, cellAt(at, 4_095, at.columns * at.width - 1, at.rows * at.height - 1));
});

function timeline(parted: number | null, ...lanes: [string, ...number[]][]): ShownTimeline {
  const made = read({
    timeline: {
      group: "0",
      parted,
      lanes: lanes.map(([op, ...seqs]) => ({ ranks: op, count: 1, calls: seqs.map((seq) => ({ seq, op })) })),
    },
  })?.timeline;
  assert.ok(made);
  return made;
}

test("columns on which all agree fold, those before a divergence stay", () => {
  const seqs = Array.from({ length: 12 }, (_, i) => i + 1);
  const shown = columns(timeline(12, ["a", ...seqs], ["a", ...seqs.slice(0, -1)]));

  assert.deepEqual(
    ["skip 1", "alike 8", "alike 9", "alike 10", "alike 11", "apart 12"],
    shown.map((each) => `${each.kind} ${each.seq}`),
  );
  assert.equal(7, shown[0]?.kind === "skip" && shown[0].count);
});

test("another operation, or none, sets a column apart even where nobody said so", () => {
  assert.deepEqual(
    ["apart", "apart"],
    columns(timeline(null, ["a", 1, 2], ["b", 1])).map((each) => each.kind),
  );
});

test("a call from before a lane's record is not taken for a missing one", () => {
  const [lane] = timeline(null, ["a", 5, 6]).lanes;
  assert.ok(lane);

  assert.deepEqual(
    ["dropped", "done", "missing"],
    [4, 5, 7].map((seq) => markAt(lane.calls, seq)),
  );
});

test("a rank that is still in an earlier call has not left out a later one", () => {
  const calls = [{ seq: 5, op: "a", open: true }];
  const [lane] = read({ timeline: { group: "0", lanes: [{ ranks: "0", count: 1, calls }] } })?.timeline?.lanes ?? [];
  assert.ok(lane);

  assert.deepEqual(
    ["open", "later"],
    [5, 6].map((seq) => markAt(lane.calls, seq)),
  );
});

test("ranks are ranges, and no more than can be read", () => {
  assert.equal("", ranges([]));
  assert.equal("3", ranges([3]));
  assert.equal("0-2,4-7", ranges([0, 1, 2, 4, 5, 6, 7]));
  assert.equal("0,2,…", ranges([0, 2, 4, 6], 2));
});

test("times and sizes have the unit that suits them", () => {
  assert.deepEqual(["74 s", "3 min", "2.5 h"], [74, 180, 9_000].map(duration));
  assert.deepEqual(["512 MiB", "12.5 GiB"], [2 ** 29, 12.5 * 2 ** 30].map(bytes));
  assert.equal("", elapsed(null, 100));
  assert.equal("", elapsed(200, 100), "a clock that is ahead");
});

test("one rank has the words of one, more have those of many", () => {
  assert.deepEqual(["waits", "wait", "has ended", "have ended"], [
    stateWord("waits"),
    stateWord("waits", 2),
    stateWord("gone", 1),
    stateWord("gone", 3),
  ]);
  assert.deepEqual(
    ["rank 3", "ranks 0-2 (3)", "1 process", "4 processes"],
    [rankNames("3", 1), rankNames("0-2", 3), rankNames("", 1), rankNames("", 4)],
  );
});

test("a place is told as the kernel names it", () => {
  for (const at of ["cell In[3], line 6, in <module>", "cell In[3]", "line 6", "train.py:6 train", "in, line 6", ""]) {
    assert.equal(at, placeName(at));
  }
});
