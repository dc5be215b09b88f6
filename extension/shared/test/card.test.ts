import assert from "node:assert/strict";
import { test } from "node:test";

import { html, named, names, sample, settle, shown } from "./dom.js";
import { type Feedback, render } from "../src/index.js";
import { RANKS_STYLE } from "../src/ranks/style.js";

/** Words of a text; labels and units that only the static HTML needs are left out. */
function words(text: string): Set<string> {
  const decoration = new Set(["because", "note", "value", "answers", "it", "why", "or"]);
  return new Set(
    text
      .toLowerCase()
      .match(/[a-z0-9_.]+/g)
      ?.map((w) => w.replace(/^\.+|\.+$/g, ""))
      .filter((w) => w && !decoration.has(w)),
  );
}

for (const name of names) {
  test(`the card of "${name}" tells every fact that the static HTML tells`, () => {
    const card = render(sample(name));
    const values = [...card.querySelectorAll("button")].map((each) => each.title).join(" ");
    const told = words(`${shown(card)} ${values} answer ${(sample(name)["question"] as { key: string } | null)?.key}`);

    assert.deepEqual(
      [],
      [...words(shown(html(name)))].filter((word) => !told.has(word)),
    );
  });
}

test("the style of the ranks leaves cards as they are: a page may hold both", () => {
  const selectors = [...RANKS_STYLE.matchAll(/(?<=^|\}\s*)([^{}@]+)\{/g)].map((rule) => (rule[1] ?? "").trim());
  assert.ok(selectors.length > 50);
  for (const card of names.map((name) => render(sample(name)))) {
    for (const selector of selectors.filter((each) => !each.includes(":"))) {
      assert.deepEqual([], [...card.querySelectorAll(selector)].map((each) => `${selector}: ${each.className}`));
    }
  }
});

test("each verdict has its own title line", () => {
  const line = (name: string): string => render(sample(name)).querySelector("summary")?.textContent ?? "";

  assert.match(line("settled"), /D\.2\.1 likely$/);
  assert.match(line("echo"), /an echo$/);
  assert.match(line("leaning"), /leaning$/);
  assert.match(line("apart"), / or /);
  assert.match(line("unknown"), /Not enough is known/);
});

test("what happened comes first, with what supports it; the symptom is its subtitle", () => {
  const card = render(sample("ranks"));
  const summary = card.querySelector("summary");

  assert.equal("Rank 1 never called all_reduce #11 of world: it is at train.py:41 in evaluate.", summary?.querySelector(".dtd-title")?.textContent);
  assert.match(summary?.querySelector(".dtd-symptom")?.textContent ?? "", /D\.2\.1/);
  assert.match(shown(card), /Ranks 0, 2-3 wait in all_reduce #11 of world for rank 1\./);
  assert.match(shown(card), /stack of rank 0/);
});

test("where nothing points to a cause the card says so, and what to do next", () => {
  const next = { kind: "measure", text: "Look at the ranks", command: "dtdebug attach", minutes: 1, why: "It names the line." };
  const card = render({ ...sample("settled"), advice: [], next });

  assert.equal(0, card.querySelectorAll(".dtd-cause").length);
  assert.match(shown(card), /The cause is not known/);
  assert.match(shown(card), /Next:\s+Look at the ranks/);
  assert.equal("dtdebug attach", card.querySelector(".dtd-command")?.textContent);
});

test("what words alone may mean stands below the next step, closed, and is called so", () => {
  const all = sample("settled");
  const next = { kind: "measure", text: "Look at the ranks.", command: "dtdebug attach", minutes: 2, why: "" };
  const card = render({ ...all, advice: [], guesses: all["advice"], next });
  const told = shown(card);

  assert.ok(told.indexOf("The cause is not known") < told.indexOf("Look at the ranks"));
  assert.ok(told.indexOf("Look at the ranks") < told.indexOf("Possible, from your words alone"));
  assert.ok([...card.querySelectorAll<HTMLDetailsElement>(".dtd-cause")].every((each) => !each.open));
  assert.doesNotMatch(told, /What may cause it/);
});

test("a further failure of the same output has its own headline and cause below", () => {
  const first = sample("settled");
  const other = { ...sample("leaning"), happened: "Rank 3 raised KeyError.", later: [sample("settled")] };
  const below = [...render({ ...first, later: [other, 7, null] }).querySelectorAll(".dtd-later")];

  assert.equal(below.length, 1);
  assert.match(shown(below[0] as HTMLElement), /Another failure.*Rank 3 raised KeyError/s);
  assert.equal(below[0]?.querySelectorAll(".dtd-cause").length, 1);
});

test("a card and its causes fold, the first cause is open", () => {
  const card = render(sample("settled"));

  assert.equal(true, card.querySelector<HTMLDetailsElement>(".dtd-card")?.open);
  assert.deepEqual(
    [true, false],
    [...card.querySelectorAll<HTMLDetailsElement>(".dtd-cause")].map((each) => each.open),
  );
});

test("without a host there are no buttons that need one", () => {
  const labels = [...render(sample("settled")).querySelectorAll("button")].map((each) => each.textContent);

  assert.equal(true, labels.includes("Copy"));
  assert.deepEqual(
    [],
    labels.filter((label) => /insert|this was it|helpful/i.test(label ?? "")),
  );
});

test("the reader's word goes to the host once, with the cause it is about", async () => {
  const heard: Feedback[] = [];
  const card = render(sample("settled"), { feedback: (about) => void heard.push(about) });

  named(card, "This was it").click();
  named(card, "Not helpful").click();
  await settle();

  assert.deepEqual(
    [
      { helped: true, symptom: "D.2.1", cause: "ranks-take-different-paths" },
      { helped: false, symptom: "D.2.1", cause: "" },
    ],
    heard,
  );
  assert.equal(true, named(card, "This was it").disabled);
});

test("everything that can be used can be reached by keyboard and has a name", () => {
  const card = render(sample("settled"), { openPlace: () => undefined, feedback: () => undefined });
  const used = [...card.querySelectorAll("button, summary, pre, section, [role=region], [role=group]")];

  assert.deepEqual(
    [],
    used.filter((each) => !(each.getAttribute("aria-label") ?? each.textContent)),
  );
  assert.deepEqual(
    [],
    [...card.querySelectorAll("[tabindex]")].filter((each) => each.getAttribute("tabindex") !== "0"),
  );
  assert.equal("0", card.querySelector("pre")?.getAttribute("tabindex"));
});
