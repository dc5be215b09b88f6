import assert from "node:assert/strict";
import { test } from "node:test";

import "./browser.js";
import { shown } from "../dom.js";
import { eight } from "./look.js";
import { RanksView } from "../../src/ranks/view.js";

const MARKUP = '<img src=x onerror="alert(1)"></style><script>alert(1)</script>';
const BOUND = 100_000;
const MOST_ELEMENTS = 30_000;

/** Values that no field is made for. */
const WRONG: unknown[] = [
  null,
  0,
  -1,
  NaN,
  Infinity,
  1e308,
  true,
  "text",
  MARKUP,
  [],
  [[]],
  [null],
  {},
  { length: 1e9 },
  "x".repeat(1_000_000),
  "\u202e\x1b[31m\u200b\ud800owned\u2066",
  Array.from({ length: 20_000 }, () => ({ rank: 1, ranks: "1", seq: 1, at: MARKUP, index: 0, because: MARKUP })),
];

function check(view: RanksView, data: unknown): string {
  view.update(data);
  assert.equal(null, view.node.querySelector("img, script"));
  const text = shown(view.node);
  assert.ok(text.length > 0 && text.length < BOUND, String(text.length));
  assert.doesNotMatch(
    text,
    /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b]|undefined|NaN|Infinity|\[object/,
  );
  return text;
}

/** The data with the value at one path replaced, for every path; of long lists the first two entries. */
function* replaced(data: unknown, value: unknown): Generator<unknown> {
  yield value;
  if (typeof data === "object" && data !== null) {
    for (const key of Object.keys(data).slice(0, Array.isArray(data) ? 2 : undefined)) {
      for (const inner of replaced((data as Record<string, unknown>)[key], value)) {
        yield Array.isArray(data)
          ? data.map((each, i) => (String(i) === key ? inner : each))
          : { ...data, [key]: inner };
      }
    }
  }
}

for (const value of WRONG) {
  test(`any field may be ${JSON.stringify(value)?.slice(0, 40)}`, () => {
    const view = new RanksView();
    for (const data of replaced(eight(), value)) {
      check(view, data);
    }
    view.dispose();
  });
}

test("any field may be missing", () => {
  const view = new RanksView();
  for (const key of Object.keys(eight())) {
    const data: Record<string, unknown> = { ...eight() };
    delete data[key];
    check(view, data);
  }
});

test("what is no look is one line, and the next look is shown again", () => {
  const view = new RanksView();

  assert.match(check(view, "text"), /^No look at the ranks yet\./);
  assert.equal(true, view.node.querySelector<HTMLElement>(".dtd-all")?.hidden);
  check(view, eight());
  assert.equal(false, view.node.querySelector<HTMLElement>(".dtd-all")?.hidden);
});

test("a newer form is shown as far as it is understood, and that is said", () => {
  const text = check(new RanksView(), { ...eight(), v: 99, future: { x: 1 } });

  assert.match(text, /form 99/);
  assert.match(text, /Rank 3 never entered/);
});

test("a state that is not known is shown as unknown", () => {
  assert.match(check(new RanksView(), { rows: [{ rank: 0, state: "sleeps" }] }), /rank 0 · unknown/);
});

test("an object that throws when it is read is one line", () => {
  const data = Object.defineProperty({}, "rows", {
    enumerable: true,
    get: () => {
      throw new Error("owned");
    },
  });

  assert.match(check(new RanksView(), data), /can't be read/);
});

test("a tree without end is cut, and so are lists without end", () => {
  const deep: Record<string, unknown> = { ranks: "0", count: 1 };
  deep["branches"] = [deep, deep, deep];
  const long = Array.from({ length: 30_000 }, (_, i) => i);
  const calls = long.map((seq) => ({ seq, op: `op${seq}` }));
  const users = long.map((i) => [`rank ${i}`, 1]);
  const view = new RanksView();

  check(view, {
    rows: long.map((rank) => ({ rank, op: `op${rank}` })),
    tree: deep,
    timeline: { lanes: long.map((i) => ({ ranks: `${i}`, calls: calls.slice(i, i + 200) })) },
    devices: long.map((index) => ({ index, users })),
    verdict: { kind: "dead", evidence: long.map(String), sites: long.map((rank) => ({ rank, file: "f" })) },
    notes: long.map(String),
  });

  assert.ok(view.node.querySelectorAll("*").length < MOST_ELEMENTS, String(view.node.querySelectorAll("*").length));
  assert.match(shown(view.node), /and 16284 more/);
});
