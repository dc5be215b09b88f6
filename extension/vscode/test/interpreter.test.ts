import assert from "node:assert/strict";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, it } from "node:test";
import { findInterpreter, obstacle } from "../src/interpreter";
import { answers, folder, reset } from "./vscode";

const PYTHON = "ms-python.python";
const pythonExtension = (path: string | undefined) => ({
  environments: {
    getActiveEnvironmentPath: () => ({ path: "/envs/a" }),
    resolveEnvironment: () => Promise.resolve({ executable: { uri: path && { fsPath: path } } }),
  },
});

function environmentIn(workspace: string): string {
  const python = join(workspace, ".venv", "bin", "python");
  mkdirSync(join(workspace, ".venv", "bin"), { recursive: true });
  writeFileSync(python, "");
  return python;
}

/** A program that ends like an interpreter on which the probe ends so. */
function ends(status: number): { path: string; from: string } {
  const path = join(folder(), "python");
  writeFileSync(path, `#!/bin/sh\nexit ${status}\n`);
  chmodSync(path, 0o755);
  return { path, from: "of a test" };
}

describe("the interpreter", () => {
  beforeEach(reset);

  it("is that of the setting, before all others", async () => {
    const workspace = folder();
    environmentIn(workspace);
    answers.folders = [workspace];
    answers.settings = { "dtdebug.interpreter": " /opt/python ", "python.defaultInterpreterPath": "/usr/bin/python9" };
    answers.extensions = { [PYTHON]: pythonExtension("/envs/a/bin/python") };
    assert.deepEqual({ path: "/opt/python", from: "from the setting dtdebug.interpreter" }, await findInterpreter());
  });

  it("may be given in relation to the workspace", async () => {
    answers.folders = ["/job"];
    answers.settings = { "dtdebug.interpreter": "${workspaceFolder}/env/bin/python" };
    assert.equal("/job/env/bin/python", (await findInterpreter()).path);
  });

  it("is the one selected in the Python extension, if that is installed", async () => {
    answers.settings = { "python.defaultInterpreterPath": "/usr/bin/python9" };
    answers.extensions = { [PYTHON]: pythonExtension("/envs/a/bin/python") };
    assert.equal("/envs/a/bin/python", (await findInterpreter()).path);
  });

  it("is the Python extension's default if none is selected there", async () => {
    answers.settings = { "python.defaultInterpreterPath": "/usr/bin/python9" };
    answers.extensions = { [PYTHON]: pythonExtension(undefined) };
    assert.equal("/usr/bin/python9", (await findInterpreter()).path);
  });

  it("is that of .venv in the workspace if nothing else is named", async () => {
    const workspace = folder();
    const python = environmentIn(workspace);
    answers.folders = [folder(), workspace];
    answers.settings = { "python.defaultInterpreterPath": "python" };
    assert.equal(python, (await findInterpreter()).path);
  });

  it("is python3 in the end", async () => {
    answers.folders = [folder()];
    assert.deepEqual({ path: "python3", from: "found on the PATH" }, await findInterpreter());
  });

  it("is nothing that a workspace names which the user does not trust", async () => {
    const workspace = folder();
    environmentIn(workspace);
    answers.folders = [workspace];
    answers.trusted = false;
    answers.settings = { "python.defaultInterpreterPath": "/usr/bin/python9" };
    answers.extensions = { [PYTHON]: pythonExtension("/envs/a/bin/python") };
    assert.equal("python3", (await findInterpreter()).path);
  });
});

describe("what stands in the way", () => {
  it("is told by the interpreter itself", async () => {
    assert.equal(undefined, await obstacle(ends(0)));
    assert.equal("not installed", await obstacle(ends(11)));
    assert.equal("too old", await obstacle(ends(12)));
  });

  it("is a start that fails", async () => {
    assert.equal("does not start", await obstacle(ends(1)));
    assert.equal("does not start", await obstacle({ path: join(folder(), "none"), from: "of a test" }));
  });
});
