import assert from "node:assert/strict";
import { test } from "node:test";

import { named, sample, settle } from "./dom.js";
import { after, lines } from "../src/diff.js";
import { render } from "../src/index.js";

const UNIFIED =
  "--- a/train.py\n+++ b/train.py\n@@ -1,3 +1,3 @@\n import torch\n-model = DDP(model)\n+model = DDP(model, find_unused_parameters=True)\n";

test("heads, added, removed and kept lines are told apart", () => {
  assert.deepEqual(
    ["head", "head", "gap", "kept", "removed", "added"],
    lines(UNIFIED).map((line) => line.kind),
  );
});

test("a removed line that begins with two dashes is no head", () => {
  assert.deepEqual(
    ["removed", "added"],
    lines("--- old flag\n+new flag").map((line) => line.kind),
  );
});

test("the code after the change has neither heads nor markers", () => {
  assert.equal("import torch\nmodel = DDP(model, find_unused_parameters=True)", after(UNIFIED));
});

test("between two places of a change stands a sign, in the code an empty line", () => {
  const two = "@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n+d\n";
  const card = render({ ...sample("settled"), advice: [{ title: "x", diff: two }] });

  assert.equal("b\n\nd", after(two));
  assert.deepEqual(["-a", "+b", "⋯", "-c", "+d"], card.querySelector("pre")?.textContent?.trim().split("\n"));
});

test("copy gives the code after the change", async () => {
  const copied: string[] = [];
  const card = render(sample("settled"), { copy: (text) => void copied.push(text) });

  named(card, "Copy").click();
  await settle();

  assert.equal(1, copied.length);
  assert.match(copied[0] ?? "", /^skip = torch/);
  assert.equal("Copied.", card.querySelector(".dtd-tools .dtd-status")?.textContent);
});

test("copying that is refused is said in one line", async () => {
  const card = render(sample("settled"), { copy: () => Promise.reject(new Error("denied")) });

  named(card, "Copy").click();
  await settle();

  assert.match(card.querySelector(".dtd-tools .dtd-status")?.textContent ?? "", /not allowed/);
});

test("a new cell says that it is an example", async () => {
  const cells: string[] = [];
  const card = render(sample("settled"), { insertCell: (source) => void cells.push(source) });

  named(card, "Insert as new cell below").click();
  await settle();

  assert.match(cells[0] ?? "", /^# An example from dtdebug.*\nskip = torch/);
});

test("what is no Python is not offered as a cell", () => {
  const shell = { title: "a transport", band: "likely", diff: "-mpirun -np 2 x\n+NCCL_P2P_DISABLE=1 mpirun -np 2 x\n", in_python: false };
  const card = render({ ...sample("settled"), advice: [shell] }, { insertCell: () => undefined });
  const labels = [...card.querySelectorAll("button")].map((each) => each.textContent);
  assert.equal(true, labels.includes("Copy"));
  assert.equal(false, labels.includes("Insert as new cell below"));
});
