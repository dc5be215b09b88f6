import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { line } from "../src/terminal";

const WORDS = ["/my envs/bin/python", "-m", "pip", "install", "dtdebug[lsp]"];

describe("a line for a shell", () => {
  it("is quoted as a POSIX shell wants it", () => {
    assert.equal("'/my envs/bin/python' -m pip install 'dtdebug[lsp]'", line(WORDS, "/bin/zsh"));
    assert.equal("'/it'\\''s/python'", line(["/it's/python"], "/bin/bash"));
  });

  it("calls a quoted program in PowerShell", () => {
    assert.equal("& '/my envs/bin/python' -m pip install 'dtdebug[lsp]'", line(WORDS, "C:\\pwsh.exe"));
    assert.equal("python -m pip", line(["python", "-m", "pip"], "C:\\powershell.exe"));
  });

  it("has double quotes for cmd", () => {
    assert.equal('"/my envs/bin/python" -m pip install "dtdebug[lsp]"', line(WORDS, "C:\\Windows\\cmd.exe"));
  });
});
