import assert from "node:assert/strict";
import { test } from "node:test";

import { buttons, named, sample, settle, shown } from "./dom.js";
import { type Actions, render } from "../src/index.js";

const SHORT = sample("short");
const ANSWER = SHORT["answer"] as Record<string, unknown>;

function with_(answer: Record<string, unknown>, host: Actions = {}): HTMLElement {
  return render({ ...SHORT, answer: { ...ANSWER, ...answer } }, host);
}

test("the sentence, the own line with its mark and the change are there, all else is behind Why?", () => {
  const card = render(SHORT);
  const short = card.querySelector(".dtd-short") as HTMLElement;
  const body = card.querySelector<HTMLElement>(".dtd-body");

  assert.equal(ANSWER["headline"], short.querySelector(".dtd-title")?.textContent);
  assert.match(shown(short), /rank 0\W+cell In\[2\], line 2/);
  assert.equal("timeout=3", short.querySelector(".dtd-marked")?.textContent);
  assert.match(short.querySelector(".dtd-diff")?.textContent ?? "", /timedelta\(seconds=3\)/);
  assert.ok(body?.hidden);
  assert.match(body?.textContent ?? "", /B\.1/);
  assert.doesNotMatch(shown(short), /B\.1|%|about \d+ min/);
});

test("Why? opens the rest and closes it again, and says which", () => {
  const card = render(SHORT);
  const why = named(card, "Why?");
  const state = () => [why.getAttribute("aria-expanded"), card.querySelector<HTMLElement>(".dtd-body")?.hidden];

  assert.deepEqual(["false", true], state());
  why.click();
  assert.deepEqual(["true", false], state());
  why.click();
  assert.deepEqual(["false", true], state());
});

test("the place is a link where the host knows the way to it", async () => {
  const opened: string[] = [];
  named(render(SHORT, { openPlace: (at) => void opened.push(at) }), "cell In[2], line 2").click();
  await settle();

  assert.deepEqual(["cell In[2], line 2"], opened);
  assert.equal(false, buttons(render(SHORT)).some((each) => /line 2/.test(each.textContent ?? "")));
});

test("what is not known has its next step, and one certainty", () => {
  const card = with_({ fix: null, sure: "unknown", next: { text: "Look at the ranks.", command: "%dtdebug hang", outcome: "It names the line." } });

  assert.match(shown(card.querySelector(".dtd-short") as HTMLElement), /Next\s+Look at the ranks\.\s+%dtdebug hang/);
  assert.equal(1, card.querySelectorAll(".dtd-short .dtd-chip").length);
  assert.equal("cause not known", card.querySelector(".dtd-short .dtd-chip")?.textContent);
});

test("a measurement can be put into a cell where the host has a notebook, and is not run", () => {
  const inserted: string[] = [];
  const next = { text: "Compare some steps.", command: "%dtdebug run --parity --yes", outcome: "" };
  const host = { insert: (source: string) => void inserted.push(source) };
  named(with_({ fix: null, next }, host), "Insert %dtdebug run --parity --yes as a cell").click();

  assert.deepEqual(["%dtdebug run --parity --yes"], inserted);
  assert.equal(0, buttons(with_({ fix: null, next: { ...next, command: "nvidia-smi" } }, host)).filter((b) => /Insert/.test(b.textContent ?? "")).length);
});

test("ranks that stand together are one place, and at most three places are shown", () => {
  const spot = (ranks: number[], line: number) => ({ ranks, file: "/home/me/train.py", line, code: "loss.backward()" });
  const card = with_({ spots: [spot([0, 1, 2, 5], 16), spot([3], 19), spot([4], 20), spot([6], 21)] });

  assert.match(shown(card), /ranks 0-2, 5\W+train\.py:16/);
  assert.equal(3, card.querySelectorAll(".dtd-spot").length);
});

test("an answer of another form leaves the card as it was without one", () => {
  for (const answer of [null, 7, [], "x", {}, { headline: 3 }]) {
    const card = render({ ...SHORT, answer });
    assert.equal(0, card.querySelectorAll(".dtd-short").length);
    assert.ok(card.querySelector("details.dtd-card > summary"));
  }
});
