import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { buttons, names, sample, settle, shown } from "./dom.js";
import "./ranks/browser.js";
import { eight } from "./ranks/look.js";
import { type Actions, render, RanksView } from "../src/index.js";
import { activate } from "../src/notebook.js";
import { content } from "../src/ranks/paint.js";
import { read } from "../src/ranks/read.js";
import { decimal, ENGLISH, type Trans, translateBy } from "../src/trans.js";
import { origin, place } from "../src/words.js";

/** Marks what it has translated. */
const MARKS: Trans = {
  __: (text, ...values) => `«${ENGLISH.__(text, ...values)}»`,
  _n: (one, many, count, ...values) => `«${ENGLISH._n(one, many, count, ...values)}»`,
};

/** Names that are the same in every language. */
const NAMES = /\bdtdebug\b|\bIn\[/g;

beforeEach(() => translateBy(MARKS));
afterEach(() => translateBy(ENGLISH));

/** Fields that hold one word of a few; it is ours to say it. */
const WORDS = new Set(["verdict", "band", "source", "kind", "state", "road", "effort", "sure", "diff_of"]);

/** The data without a letter in its texts, so that all letters that are shown are ours; places in cells stay. */
function wordless(data: unknown, key = ""): unknown {
  if (typeof data === "string") {
    return WORDS.has(key) || /^cell In/.test(data) ? data : data && "7";
  }
  if (Array.isArray(data)) {
    return data.map((each) => wordless(each));
  }
  return typeof data === "object" && data !== null
    ? Object.fromEntries(Object.entries(data).map(([name, each]) => [name, wordless(each, name)]))
    : data;
}

/** What is shown or read out and has letters that no translation has seen; code has no language. */
function untranslated(root: Element): string[] {
  const said = [...root.querySelectorAll("*"), root]
    .filter((each) => !["STYLE", "CODE"].includes(each.tagName))
    .flatMap((each) => [
      [...each.childNodes].map((child) => (child.nodeType === 3 ? child.textContent : "")).join(""), // code may be within
      ...["aria-label", "title", "placeholder"].map((name) => each.getAttribute(name) ?? ""),
    ]);
  return said.filter((each) => /\p{L}/u.test(untouched(each)));
}

function untouched(text: string): string {
  const rest = text.replace(/«[^«»]*»/g, "");
  return rest === text ? text.replace(NAMES, "") : untouched(rest);
}

function card(name: string): Record<string, unknown> {
  return wordless(sample(name)) as Record<string, unknown>;
}

const ACCEPTS: Required<Actions> = {
  copy: () => undefined,
  openPlace: () => undefined,
  fits: () => ({ where: "7", apply: () => undefined }),
  answer: () => undefined,
  skip: () => undefined,
  back: () => undefined,
  guide: () => undefined, insert: () => undefined,
  feedback: () => undefined,
};
const refuses = () => Promise.reject(new Error("no"));
const REFUSES: Actions = { ...ACCEPTS, copy: refuses, openPlace: refuses, fits: () => ({ where: "7", apply: refuses }), answer: refuses, skip: refuses, feedback: refuses };
const HOSTS: Record<string, Actions> = {
  "nobody": {},
  "one who copies": { copy: () => undefined },
  "one who takes all": ACCEPTS,
  "one who takes nothing": REFUSES,
};

for (const [who, host] of Object.entries(HOSTS)) {
  for (const name of names) {
    test(`the card of "${name}" for ${who}, and what its buttons say, is translated`, async () => {
      const root = render(card(name), host);

      assert.deepEqual([], untranslated(root));
      assert.match(root.textContent ?? "", /«/);
      for (const press of buttons(root)) {
        press.click();
        await settle();
        assert.deepEqual([], untranslated(root), `after "${press.textContent}"`);
      }
    });
  }
}

test("a card with all that may be on it is translated", () => {
  const lines = Array.from({ length: 200 }, () => "+7").join("\n");
  const advice = { title: "7", band: "unlikely", minutes: 10, fix: "7", diff: lines, diff_of: "yours", because: [] };
  const next = { kind: "measure", text: "7", command: "7", minutes: 1, why: "7" };
  const said = { happened: "7", seen: [{ text: "7", record: "7" }], next };
  const because = [{ means: "7", source: "printed", line: 3, rank: 2, weight: -1, words: "7" }];
  const sources = ["printed", "said", "exception", "measured", "answered", "similar", "checked"];
  const symptoms = ["possible", "likely"].map((band) => ({ title: "7", code: "7", band, why: because }));
  const question = { key: "7", ask: "7", why: "7", how: "7", command: "7", values: [["7", "7"]] };
  for (const verdict of ["apart", "echo", "leaning", "settled", "unknown"]) {
    const data = { v: 99, verdict, symptoms, advice: [advice], question, culprits: [1, 2], notes: ["7"] };

    assert.deepEqual([], untranslated(render(data, ACCEPTS)), verdict);
    assert.deepEqual([], untranslated(render({ ...data, ...said }, ACCEPTS)), verdict);
    assert.deepEqual([], untranslated(render({ ...data, advice: [], ...said }, ACCEPTS)), verdict);
  }
  assert.deepEqual([], sources.filter((source) => !/^«.+»$/.test(origin(source))));
  assert.equal("«rank 2», «line 3 of the output»", place({ ...because[0]!, evidence: "", file: "" } as never));
});

test("what is said where there is nothing to show is translated", () => {
  const throws = Object.defineProperty({}, "v", {
    get: () => {
      throw new Error("owned");
    },
  });

  for (const data of [null, {}, { v: 99 }, throws]) {
    assert.deepEqual([], untranslated(render(data)));
  }
});

test("what an answer does in a notebook of VS Code is translated", async () => {
  const element = document.createElement("div");
  activate({ postMessage: () => undefined }).renderOutputItem({ json: () => card("leaning") }, element);

  for (const press of buttons(element)) {
    press.click();
    await settle();
  }
  assert.match(shown(element.children[0]!), /«Run the new cell below to answer\.»/);
  assert.deepEqual([], untranslated(element));
});

/** Every state, place, size, sign and note that a look can have. */
function looks(): unknown[] {
  const eightRanks = wordless(eight()) as Record<string, object[]>;
  const states = ["culprit", "waits", "runs", "silent", "gone", "sleeps"];
  const row = { step: 1, op: "7", seq: 1, group: "7", since: 10, at: "cell In[3], line 6, in 7", memory: [2 ** 20, 2 ** 40], host: "7" };
  const rows = states.flatMap((state, i) => [
    { ...row, state, rank: i, pid: i },
    { ...row, state, rank: 10 + i },
    { state, pid: i },
    { state, at: `7:${i}` },
  ]);
  const call = { seq: 5, op: "7" };
  const calls = [[call, { ...call, seq: 6 }], [{ ...call, open: true, begun: 10 }], [{ ...call, odd: true }], [{ ...call, seq: 7 }]];
  const lanes = calls.map((each, i) => ({ ranks: "0-7", count: 8, culprit: i === 1, calls: [...each] }));
  const alike = Array.from({ length: 20 }, (_, i) => ({ ...call, seq: i }));
  const frames = [{ at: "7:1" }, { at: "7:2" }, { at: "cell In[3], line 6, in 7", own: true }];
  return [
    eightRanks,
    { ...eightRanks, v: 99, cell: { line: 6, seconds: 500 }, taken: 10_000, rows, hangs: true },
    { rows: [rows[1]], taken: 20, hangs: false, tree: { ranks: "", count: 1, frames, branches: [{ ranks: "", count: 3 }] } },
    { rows: many(rows), hangs: null, timeline: { group: "7", parted: null, lanes: [{ ranks: "0", calls: alike }] } },
    { taken: 100, timeline: { group: "7", parted: 6, lanes } },
    ...[0.95, 0.8, 0.5, 0.1].map((confidence) => ({
      verdict: { ...(eightRanks["verdict"] as object), confidence, summary: "", stragglers: [1, 2] },
    })),
  ];
}

/** More classes than are listed. */
function many(rows: readonly object[]): object[] {
  return Array.from({ length: 120 }, (_, i) => ({ ...rows[0], rank: i, op: "7", seq: i }));
}

test("all that is said of ranks is translated", () => {
  const view = new RanksView({ openPlace: () => undefined });

  assert.deepEqual([], untranslated(view.node));
  for (const look of looks()) {
    view.update(look);
    assert.deepEqual([], untranslated(view.node));
    for (const press of buttons(view.node)) {
      press.click();
      assert.deepEqual([], untranslated(view.node));
    }
    for (const row of read(look)?.rows ?? []) {
      const [, ...drawn] = content("full", row, 10_000);
      assert.deepEqual([], drawn.filter((each) => /\p{L}/u.test(untouched(each))));
    }
  }
  view.update(Object.defineProperty({}, "rows", { get: () => assert.fail("unreadable") }));
  assert.deepEqual([], untranslated(view.node));
});

test("a place says where it leads to in the reader's language, and leads there in the kernel's words", () => {
  const heard: string[] = [];
  const view = new RanksView({ openPlace: (at) => void heard.push(at) });
  view.update({ verdict: { kind: "dead", sites: [{ rank: 3, file: "cell In[3]", line: 11, function: "save" }] } });
  const press = view.node.querySelector<HTMLButtonElement>(".dtd-where button");
  press?.click();

  assert.equal("«cell In[3]», «line 11», «in save»", press?.textContent);
  assert.deepEqual(["cell In[3], line 11, in save"], heard);
});

test("values go in after the translation, and counts choose its form", () => {
  assert.equal("3 %1", ENGLISH.__("%1 %2", 3, "%1"));
  assert.deepEqual(
    ["0 ranks: a", "1 rank: a", "2 ranks: a"],
    [0, 1, 2].map((count) => ENGLISH._n("%1 rank: %2", "%1 ranks: %2", count, "a")),
  );
});

test("numbers are written as the language of the page does", () => {
  assert.equal("3.5", decimal(3.5, 1));
  document.documentElement.lang = "pt-BR";
  assert.equal("3,5", decimal(3.5, 1));
  document.documentElement.lang = "";
});
