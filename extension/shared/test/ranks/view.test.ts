import assert from "node:assert/strict";
import { test } from "node:test";

import { alive } from "./browser.js";
import { shown } from "../dom.js";
import { eight, many } from "./look.js";
import { RanksView } from "../../src/ranks/view.js";

function opened(data: unknown, host = {}): RanksView {
  const view = new RanksView(host);
  view.update(data);
  return view;
}

function part(view: RanksView, label: string): HTMLDetailsElement {
  const found = [...view.node.querySelectorAll<HTMLDetailsElement>("details")].find((each) =>
    each.querySelector("summary")?.textContent?.startsWith(label),
  );
  assert.ok(found, label);
  return found;
}

test("a look tells which rank, what, where, how sure and why", () => {
  const head = opened(eight()).node.querySelector(".dtd-verdict") as Element;
  const text = shown(head);

  assert.match(text, /Rank 3 never entered all_reduce #41/);
  assert.match(text, /almost certain/);
  assert.match(text, /Rank 3 completed all_reduce #40/);
  assert.match(text, /may have been cut off .* To tell: look at its stack/);
  assert.match(text, /cell In\[3\], line 22 .*mp\.spawn.* runs for 81 s/);
});

test("the culprit's line comes before the lines of those that wait", () => {
  const where = [...opened(eight()).node.querySelectorAll(".dtd-where li")].map((each) => each.textContent);

  assert.deepEqual(["rank 3 cell In[3], line 11, in save", "rank 0 cell In[3], line 6, in train"], where);
});

test("a cause that is known leads the panel as it leads the card, with its certainty", () => {
  const head = (sure: string) =>
    opened({ ...eight(), answer: { headline: "Only rank 3 saves", sure, spots: [] } }).node.querySelector(".dtd-verdict") as Element;
  const title = (sure: string) => head(sure).querySelector(".dtd-line-title")?.textContent ?? "";

  assert.match(title("certain"), /Only rank 3 saves.*certain/);
  assert.match(title("likely"), /Only rank 3 saves.*likely/);
  assert.match(title("possible"), /never entered/);
});

test("an answer shows the lines of both sides and the change below the verdict's sentence", () => {
  const spots = [
    { ranks: [3], file: "cell In[3]", line: 11, code: "torch.save(model, path)", state: "is in save" },
    { ranks: [0, 1], file: "cell In[3]", line: 6, code: "dist.all_reduce(loss)", state: "waits 74 s" },
  ];
  const fix = { text: "Move it.", diff: "--- a\n+++ b\n@@ -6 +6 @@\n-dist.all_reduce(loss)\n+dist.barrier()\n" };
  const opens: string[] = [];
  const view = opened({ ...eight(), answer: { headline: "Only rank 3 saves", spots, fix } }, { openPlace: (at: string) => opens.push(at) });
  const head = view.node.querySelector(".dtd-verdict") as Element;
  const lines = [...head.querySelectorAll(".dtd-where .dtd-source")].map((each) => each.textContent);
  head.querySelector<HTMLButtonElement>(".dtd-where button")?.click();

  assert.match(head.querySelector(".dtd-line-title")?.textContent ?? "", /never entered/);
  assert.deepEqual(["torch.save(model, path)", "dist.all_reduce(loss)"], lines);
  assert.deepEqual(["cell In[3], line 11"], opens);
  assert.match(head.querySelector(".dtd-fix")?.textContent ?? "", /Move it\..*dist\.barrier\(\)/s);

  view.update(eight());

  assert.equal(null, head.querySelector(".dtd-fix"));
});

test("ranks that do the same are one line, culprits first", () => {
  const lines = [...opened(eight()).node.querySelectorAll(".dtd-class")].map((each) => each.textContent);

  assert.deepEqual(["rank 3 · culprit", "ranks 0-2,4-7 (7) · wait 74 s in all_reduce #41"], lines);
});

test("four thousand ranks fold to a few lines", () => {
  const view = opened(many(4_096));

  assert.equal(5, view.node.querySelectorAll(".dtd-class").length);
  assert.ok(view.node.querySelectorAll("*").length < 150);
  assert.match(view.node.querySelector(".dtd-field")?.getAttribute("aria-label") ?? "", /^4096 ranks: 1 culprit, 21 /);
});

test("the time line is a table with headers, the column where the ranks diverge is marked", () => {
  const table = opened(eight()).node.querySelector("table") as HTMLTableElement;
  const heads = [...table.querySelectorAll("thead th")];

  assert.deepEqual(
    ["ranks", "+11", "#37", "#38", "#39", "#40", "#41"],
    heads.map((each) => each.textContent),
  );
  assert.deepEqual(
    ["#41"],
    heads.filter((each) => each.classList.contains("dtd-parted")).map((each) => each.textContent),
  );
  assert.deepEqual(
    ["all_reduceopen for 74 scell In[3], line 6, in train", "not called"],
    [...table.querySelectorAll("tbody tr")].map((each) => each.lastElementChild?.textContent),
  );
  assert.equal(2, table.querySelectorAll("th[scope=row]").length);
});

test("branches with a culprit are open, frames of libraries fold", () => {
  const view = opened(eight());
  const branches = [...view.node.querySelectorAll<HTMLDetailsElement>(".dtd-branch")];

  assert.deepEqual(
    [true, false, true],
    branches.map((each) => Boolean(each.open)),
  );
  assert.equal(true, branches[2]?.classList.contains("dtd-is-culprit"));
  assert.deepEqual(
    [false, false, false],
    [...view.node.querySelectorAll<HTMLDetailsElement>(".dtd-library")].map((each) => Boolean(each.open)),
  );
});

test("folds, the chosen class and the elements stay from look to look", () => {
  const view = opened(eight());
  const stacks = part(view, "Stacks");
  stacks.open = false;
  const branch = view.node.querySelectorAll<HTMLDetailsElement>(".dtd-branch")[1] as HTMLDetailsElement;
  branch.open = true;
  const line = view.node.querySelectorAll<HTMLButtonElement>(".dtd-class")[1] as HTMLButtonElement;
  line.click();

  view.update({ ...eight(), taken: (eight().taken ?? 0) + 5 });

  assert.equal(false, stacks.open);
  assert.equal(branch, view.node.querySelectorAll(".dtd-branch")[1]);
  assert.equal(true, branch.open);
  assert.equal(line, view.node.querySelectorAll(".dtd-class")[1]);
  assert.equal("true", line.getAttribute("aria-pressed"));
  assert.equal("ranks 0-2,4-7 (7) · wait 79 s in all_reduce #41", line.textContent);
});

test("the same look again changes nothing in the document", () => {
  const view = opened(eight());
  const before = view.node.innerHTML;
  const elements = [...view.node.querySelectorAll("*")];

  view.update(eight());

  assert.equal(before, view.node.innerHTML);
  assert.deepEqual(
    [],
    [...view.node.querySelectorAll("*")].filter((each, i) => each !== elements[i]),
  );
});

test("what a later look has no more is no longer shown", () => {
  const view = opened(eight());

  view.update({ v: 1, hangs: false, rows: [{ rank: 0, state: "runs", step: 13 }] });

  assert.match(shown(view.node.querySelector(".dtd-verdict") as Element), /^Ranks are making progress\./);
  assert.equal(true, part(view, "Time line").hidden);
  assert.equal(true, part(view, "Stacks").hidden);
  assert.equal(true, part(view, "GPUs").hidden);
  assert.deepEqual(
    ["rank 0 · runs"],
    [...view.node.querySelectorAll(".dtd-class")].map((each) => each.textContent),
  );
});

test("a place is a button only where the host opens places, and opens what stands there", () => {
  const heard: string[] = [];
  const view = opened(eight(), { openPlace: (at: string) => void heard.push(at) });

  view.node.querySelector<HTMLButtonElement>(".dtd-where button")?.click();

  assert.deepEqual(["cell In[3], line 11, in save"], heard);
  assert.equal(null, opened(eight()).node.querySelector("button.dtd-place"));
});

test("nothing is left at work after the view is disposed of", () => {
  alive.clear();
  const view = opened(eight());
  assert.ok(alive.size > 0);

  view.dispose();
  view.dispose();

  assert.equal(0, alive.size);
});

test("what is used by keyboard or read out has a name", () => {
  const view = opened(eight(), { openPlace: () => undefined });
  const used = [...view.node.querySelectorAll("button, summary, [role]:not([role=status], [role=option]), section")];

  assert.deepEqual(
    [],
    used.filter((each) => !(each.getAttribute("aria-label") ?? each.textContent)).map((each) => each.outerHTML),
  );
});
