import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { forgetTold, tellObstacle } from "../src/status";
import { answers, done, memory, reset } from "./vscode";

const PYTHON = { path: "/envs/my env/bin/python", from: "selected in the Python extension" };

describe("the message about a missing server", () => {
  beforeEach(reset);

  it("names the interpreter and who named it", async () => {
    await tellObstacle(memory(), PYTHON, "not installed");
    assert.deepEqual(
      [
        "message",
        "dtdebug[lsp] is not installed for /envs/my env/bin/python (selected in the Python extension), " +
          "so your files are not checked.",
        "Show install command",
        "Select interpreter...",
      ],
      done[0],
    );
  });

  it("is shown once for an interpreter, and again when the user asks for something", async () => {
    const kept = memory();
    await tellObstacle(kept, PYTHON, "not installed");
    await tellObstacle(kept, PYTHON, "not installed");
    assert.equal(1, done.length);
    await tellObstacle(kept, { ...PYTHON, path: "/usr/bin/python3" }, "not installed");
    assert.equal(2, done.length);
    await forgetTold(kept);
    await tellObstacle(kept, PYTHON, "not installed");
    assert.equal(3, done.length);
  });

  it("types the install command without running it", async () => {
    answers.pressed = "Show install command";
    await tellObstacle(memory(), PYTHON, "not installed");
    assert.deepEqual(["type", "'/envs/my env/bin/python' -m pip install 'dtdebug[lsp]'"], done[1]);
  });

  it("offers another interpreter where installing would not help", async () => {
    answers.pressed = "Select interpreter...";
    await tellObstacle(memory(), PYTHON, "too old");
    assert.deepEqual(["Select interpreter..."], done[0]?.slice(2));
    assert.deepEqual(["command", "dtdebug.selectInterpreter"], done[1]);
  });
});
