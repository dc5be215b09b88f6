import assert from "node:assert/strict";
import { test } from "node:test";

import { isKnown, plain } from "../src/matcher.js";

const error = (ename: string, evalue: string, ...traceback: string[]) => isKnown({ ename, evalue, traceback });

test("an error that only distributed training prints is known", async () => {
  assert.equal(await error("RuntimeError", "NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error"), true);
  assert.equal(await error("RuntimeError", "Expected to have finished reduction in the prior iteration before starting a new one."), true);
});

test("a class that only distributed training raises is known, whatever it says", async () => {
  assert.equal(await error("DistBackendError", ""), true);
  assert.equal(await error("ProcessRaisedException", "\n\n-- Process 1 terminated with the following error:\n"), true);
});

test("any error from code that only several processes run is known", async () => {
  const at = 'File \x1b[32m/site-packages/torch/distributed/c10d_logger.py:81\x1b[39m, in _exception_logger';
  assert.equal(await error("ValueError", "x", at), true);
  assert.equal(await error("ValueError", "x", at.replaceAll("/", "\\")), true);
});

test("colours in the middle of a message hide nothing", async () => {
  assert.equal(await error("RuntimeError", "x", "\x1b[31munhandled \x1b[1msystem\x1b[0m error, NCCL version 2.19.3"), true);
});

test("errors of every day are not", async () => {
  assert.equal(await error("ZeroDivisionError", "division by zero", "----> 1 1/0"), false);
  assert.equal(await error("ModuleNotFoundError", "No module named 'pandas'"), false);
  assert.equal(await error("KeyError", "'price'", "File /site-packages/pandas/core/indexes/base.py:3812, in get_loc"), false);
  assert.equal(await error("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"), false);
});

test("an endless error is looked at in its end only", async () => {
  const long = `${"x".repeat(3_000_000)}\n`;
  assert.equal(await error("RuntimeError", "x", long, "NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error"), true);
  assert.equal(await error("RuntimeError", "x", `NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error${long}`), false);
});

test("plain text has no escapes", () => {
  assert.equal(plain("\x1b[0;31mred\x1b[0m"), "red");
});
