import assert from "node:assert/strict";
import { test } from "node:test";

import { isKnown, plain } from "../src/matcher.js";

const error = (ename: string, evalue: string, ...traceback: string[]) => isKnown({ ename, evalue, traceback });

test("an error that only distributed training prints is known", () => {
  assert.ok(error("RuntimeError", "NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error"));
  assert.ok(error("RuntimeError", "Expected to have finished reduction in the prior iteration before starting a new one."));
});

test("a class that only distributed training raises is known, whatever it says", () => {
  assert.ok(error("DistBackendError", ""));
  assert.ok(error("ProcessRaisedException", "\n\n-- Process 1 terminated with the following error:\n"));
});

test("any error from code that only several processes run is known", () => {
  const at = 'File \x1b[32m/site-packages/torch/distributed/c10d_logger.py:81\x1b[39m, in _exception_logger';
  assert.ok(error("ValueError", "x", at));
  assert.ok(error("ValueError", "x", at.replaceAll("/", "\\")));
});

test("colours in the middle of a message hide nothing", () => {
  assert.ok(error("RuntimeError", "x", "\x1b[31munhandled \x1b[1msystem\x1b[0m error, NCCL version 2.19.3"));
});

test("errors of every day are not", () => {
  assert.ok(!error("ZeroDivisionError", "division by zero", "----> 1 1/0"));
  assert.ok(!error("ModuleNotFoundError", "No module named 'pandas'"));
  assert.ok(!error("KeyError", "'price'", "File /site-packages/pandas/core/indexes/base.py:3812, in get_loc"));
  assert.ok(!error("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"));
});

test("an endless error is looked at in its end only", () => {
  const long = `${"x".repeat(3_000_000)}\n`;
  assert.ok(error("RuntimeError", "x", long, "NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error"));
  assert.ok(!error("RuntimeError", "x", `NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error${long}`));
});

test("plain text has no escapes", () => {
  assert.equal(plain("\x1b[0;31mred\x1b[0m"), "red");
});
