import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { cellFor } from "../src/notebook";

describe("a message of a card in a notebook", () => {
  it("becomes a cell with the fix", () => {
    assert.equal("x = 1", cellFor({ type: "insertCell", source: "x = 1" }));
  });

  it("becomes the line that answers the question", () => {
    assert.equal("%dtdebug answer activity training", cellFor({ type: "answer", key: "activity", value: "training" }));
  });

  it("is dropped if an answer is more than words", () => {
    assert.equal(undefined, cellFor({ type: "answer", key: "activity", value: "x\n!rm -r ~" }));
  });
});
