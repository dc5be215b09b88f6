import assert from "node:assert/strict";
import { test } from "node:test";

import { buttons, sample, settle } from "./dom.js";
import { type Actions, render } from "../src/index.js";

const QUESTION = {
  key: "nodes",
  ask: "How many hosts?",
  values: [
    ["one", "one host"],
    ["many", "two or more"],
  ],
};

function asked(question: object, host: Actions = {}): HTMLElement {
  const root = render({ ...sample("unknown"), advice: [], question }, host).querySelector<HTMLElement>(".dtd-question");
  assert.ok(root);
  return root;
}

test("an answer goes to the host, and another one can be chosen", async () => {
  const heard: string[][] = [];
  const root = asked(QUESTION, { answer: (...given) => void heard.push(given) });

  buttons(root)[0]?.click();
  assert.deepEqual(
    [true, true],
    buttons(root).map((each) => each.disabled),
    "one at a time",
  );
  await settle();
  buttons(root)[1]?.click();
  await settle();

  assert.deepEqual(
    [
      ["nodes", "one"],
      ["nodes", "many"],
    ],
    heard,
  );
  assert.deepEqual(
    ["false", "true"],
    buttons(root).map((each) => each.getAttribute("aria-pressed")),
  );
  assert.equal("Sent.", root.querySelector(".dtd-status")?.textContent);
});

test("of many answers the likely ones stand open, the others behind one line", () => {
  const values = ["a", "b", "c", "d", "e"].map((name) => [name, `answer ${name}`]);
  const root = asked({ ...QUESTION, values });
  const others = [...root.querySelectorAll<HTMLElement>(".dtd-choices details button")];
  assert.deepEqual(["d", "e"], others.map((each) => each.title));
  assert.equal(buttons(root).length, 5);
  assert.equal(asked(QUESTION).querySelector(".dtd-choices details"), null);
});

test("the host may tell in its own words what an answer does", async () => {
  const root = asked(QUESTION, { answer: () => "Run the new cell." });

  buttons(root)[0]?.click();
  await settle();

  assert.equal("Run the new cell.", root.querySelector(".dtd-status")?.textContent);
});

test("an answer that the host refuses can be given in a cell, or again", async () => {
  const root = asked(QUESTION, { answer: () => Promise.reject(new Error("no kernel")) });

  buttons(root)[0]?.click();
  await settle();

  assert.equal("%dtdebug answer nodes one", root.querySelector(".dtd-answer code")?.textContent);
  assert.deepEqual(
    [false, false],
    buttons(root).map((each) => each.disabled),
  );
});

test("a guide also takes that its reader does not know, and a step back", async () => {
  const heard: string[] = [];
  const skip = (key: string) => void heard.push(key);
  const back = () => void heard.push("back");
  const root = asked({ ...QUESTION, why: "It tells A from B.", how: "Look at `x`." }, { answer: () => undefined, skip, back });

  assert.deepEqual(["one host", "two or more", "Don't know", "Back"], buttons(root).map((each) => each.textContent));
  assert.deepEqual(["Why?", "Show me how"], [...root.querySelectorAll("summary")].map((each) => each.textContent));
  buttons(root)[2]?.click();
  await settle();
  buttons(root)[3]?.click();
  await settle();
  assert.deepEqual(["nodes", "back"], heard);
});

test("without a host the line that answers is shown and copied", async () => {
  const copied: string[] = [];
  const root = asked(QUESTION, { copy: (text) => void copied.push(text) });

  buttons(root)[0]?.click();
  await settle();

  assert.equal("%dtdebug answer nodes one", root.querySelector(".dtd-answer code")?.textContent);
  assert.deepEqual(["%dtdebug answer nodes one"], copied);
});

for (const key of ["nodes\n!rm -rf /", "nodes; x", "$(x)", "-x", "", "x".repeat(81)]) {
  test(`no line can be copied for the key ${JSON.stringify(key).slice(0, 30)}`, () => {
    assert.deepEqual([], buttons(asked({ ...QUESTION, key }, { answer: () => undefined })));
    assert.deepEqual([], buttons(asked({ ...QUESTION, key: "nodes", values: [[key, "means"]] })));
  });
}
