import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { cellFor, fileOf } from "../src/notebook";

describe("a message of a card in a notebook", () => {
  it("becomes the line that answers the question", () => {
    assert.equal("%dtdebug answer activity training", cellFor({ type: "answer", key: "activity", value: "training" }));
  });

  it("is dropped if an answer is more than words", () => {
    assert.equal(undefined, cellFor({ type: "answer", key: "activity", value: "x\n!rm -r ~" }));
  });
});

describe("the file that a diff names", () => {
  const named = (path: string) => fileOf(`--- a/train.py\n+++ ${path}\n@@ -1 +1 @@\n-a\n+b\n`);

  it("is looked for below the folders that are open", () => {
    assert.equal("src/train.py", named("b/src/train.py\t2026-01-01"));
  });

  it("is none if it lies elsewhere", () => {
    assert.deepEqual([undefined, undefined, undefined], [named("/etc/passwd"), named("b/../x.py"), named("b//etc/passwd")]);
  });
});
