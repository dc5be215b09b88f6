import assert from "node:assert/strict";
import { test } from "node:test";

import { named, sample, settle } from "./dom.js";
import { after, lines, parts, patched } from "../src/diff.js";
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
  const card = render({ ...sample("settled"), advice: [{ title: "x", diff: two, diff_of: "yours" }] });

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

test("an example of another program is not shown", () => {
  const all = sample("settled");
  const advice = (all["advice"] as object[]).map((each) => ({ ...each, diff_of: "example" }));

  assert.equal(0, render({ ...all, advice }).querySelectorAll(".dtd-diff").length);
  assert.equal(2, render(all).querySelectorAll(".dtd-diff").length);
});

test("a diff of two cells has a part of each, and tells which line is of which", () => {
  const two = "--- In[2]\n+++ In[2]\n@@ -1,2 +1 @@\n a\n-b\n--- In[5]\n+++ In[5]\n@@ -1 +1,2 @@\n c\n+b\n";
  const card = render({ ...sample("settled"), advice: [{ title: "x", diff: two, diff_of: "yours" }] });

  assert.deepEqual(["a", "c\nb"], parts(two).map((part, i) => patched(part, i ? "c" : "a\nb")));
  assert.deepEqual([UNIFIED], parts(UNIFIED));
  assert.equal(null, patched(two, "a\nb"), "a cell alone has no place for the other's part");
  assert.equal("# In[2]\na\n# In[5]\nc\nb", after(two));
  assert.deepEqual(["# In[2]", " a", "-b", "# In[5]", " c", "+b"], card.querySelector("pre")?.textContent?.trim().split("\n"));
});

const SOURCE = "import torch\nmodel = DDP(model)\nprint(1)";

test("a diff is applied where every line stands as it says", () => {
  assert.equal("import torch\nmodel = DDP(model, find_unused_parameters=True)\nprint(1)", patched(UNIFIED, SOURCE));
  assert.equal(`%%writefile a.py\n${patched(UNIFIED, SOURCE)}`, patched(UNIFIED, `%%writefile a.py\n${SOURCE}`));
  assert.equal(`\n  \n${patched(UNIFIED, SOURCE)}`, patched(UNIFIED, `\n  \n${SOURCE}`), "empty lines before the code");
  assert.equal("a\nnew\nb", patched("@@ -1,0 +2 @@\n+new\n", "a\nb"));
  assert.equal("b\nc\nE", patched("@@ -1,2 +1 @@\n-a\n b\n@@ -4 +3 @@\n-d\n+E\n\\ No newline at end of file\n", "a\nb\nc\nd"));
});

test("a diff that does not fit is not applied", () => {
  for (const other of ["", "x = 1", `# one line more\n${SOURCE}`, SOURCE.replace("DDP(model)", "DDP(net)"), "import torch"]) {
    assert.equal(null, patched(UNIFIED, other));
  }
  assert.equal(null, patched("-a\n+b\n", "a"), "a short form says no lines");
  assert.equal(null, patched("@@ -9 +9 @@\n-a\n+b\n", "a"));
});

test("only a diff of the user's own code is applied, where it fits still", async () => {
  let source = SOURCE;
  const host = {
    fits: (diff: string) => {
      const text = patched(diff, source);
      return text === null ? null : { where: "cell [4]", apply: () => void (source = text) };
    },
  };
  const advice = { title: "x", diff: UNIFIED, in_python: true };
  const yours = render({ ...sample("settled"), advice: [{ ...advice, diff_of: "yours" }] }, host);

  assert.deepEqual(["Apply to cell [4]", "Copy"], labels(yours));
  named(yours, "Apply to cell [4]").click();
  await settle();
  assert.match(source, /find_unused_parameters=True/);
  assert.equal("Applied to cell [4]: run it again.", told(yours));
  named(yours, "Apply to cell [4]").click();
  await settle();
  assert.match(told(yours), /has changed since/);
});

function labels(card: HTMLElement): (string | null)[] {
  return [...card.querySelectorAll(".dtd-tools button")].map((each) => each.textContent);
}

function told(card: HTMLElement): string {
  return card.querySelector(".dtd-tools .dtd-status")?.textContent ?? "";
}
