import assert from "node:assert/strict";
import { test } from "node:test";

import { type Applied, activate, type Message } from "../src/notebook.js";
import { named, sample, settle } from "./dom.js";

const DIFF = "--- a/cell\n+++ b/cell\n@@ -1 +1 @@\n-a\n+b\n";

test("a fix is applied by the extension, and its reply is told", async () => {
  const posted: Message[] = [];
  const listeners = new Set<(message: unknown) => void>();
  const { renderOutputItem } = activate({
    postMessage: (message) => void posted.push(message as Message),
    onDidReceiveMessage: (listener) => {
      listeners.add(listener);
      return { dispose: () => void listeners.delete(listener) };
    },
  });
  const card = document.createElement("div");
  const advice = [{ title: "x", diff: DIFF, diff_of: "yours" }];
  renderOutputItem({ json: () => ({ ...sample("settled"), advice }) }, card);

  for (const [done, told] of [
    [true, "Applied to your code: run it again."],
    [false, "The code has changed since: make the change by hand."],
  ] as const) {
    named(card, "Apply to your code").click();
    await settle();
    const asked = posted.at(-1);
    assert(asked?.type === "apply" && asked.diff === DIFF);
    const reply = (id: string): Applied => ({ type: "applied", id, done });
    listeners.forEach((listener) => listener(reply("another card's")));
    assert.equal(1, listeners.size);
    listeners.forEach((listener) => listener(reply(asked.id)));
    await settle();
    assert.equal(told, card.querySelector(".dtd-tools .dtd-status")?.textContent);
    assert.equal(0, listeners.size);
  }
});

test("without a way to hear the reply there is no button", () => {
  const card = document.createElement("div");
  const advice = [{ title: "x", diff: DIFF, diff_of: "yours" }];
  activate({ postMessage: () => undefined }).renderOutputItem({ json: () => ({ ...sample("settled"), advice }) }, card);
  assert.throws(() => named(card, "Apply to your code"), /no button/);
});
