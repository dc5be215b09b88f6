"""The log of a build of another program is not understood as training; its first errors are quoted, two at most."""

from __future__ import annotations

import pytest

from dtdebug.cli.main import main
from dtdebug_taxonomy.logs.build_logs import errors_of_build

GRADLE = """\
> Task :app:compileDebugKotlin
w: file:///b/TrainDetail.kt:88:21 Variable 'step' is never used
e: file:///b/TrainList.kt:41:37 Unresolved reference: loadBatch
e: file:///b/EpochClock.kt:17:9 Type mismatch: inferred type is Long but Int was expected
e: file:///b/EpochClock.kt:19:9 Unresolved reference: epoch

BUILD FAILED in 1m 12s
ERROR: Job failed: exit code 1
"""
CARGO = "error[E0425]: cannot find value `step`\n --> src/main.rs:3:5\nerror: could not compile `app`\n"
MAKE = "src/train.c:14:9: error: 'epoch' undeclared\nmake: *** [Makefile:3: train.o] Error 1\n"
TSC = "src/batch.ts(3,9): error TS2304: Cannot find name 'loss'.\n"


@pytest.mark.parametrize(
    ("text", "first"),
    [(GRADLE, "e: file:///b/TrainList"), (CARGO, "error[E0425]"), (MAKE, "src/train.c:14"), (TSC, "src/b")],
)
def test_the_errors_of_a_build_are_quoted(text: str, first: str, tmp_path, capsys) -> None:
    found = errors_of_build(text)
    assert found is not None
    assert found[0].startswith(first)
    assert len(found) <= 2
    (tmp_path / "ci.log").write_text(text)
    assert main([str(tmp_path / "ci.log")]) == 1
    said = capsys.readouterr().out
    assert said.startswith("dtdebug: Not understood: this is the log of a build")
    assert first in said
    assert "Job failed" not in said


@pytest.mark.parametrize(
    "text",
    [
        "step 1 loss 2.0\nERROR: Job failed: exit code 1\n",
        "ninja: build stopped\nFAILED: flash_attn.o\nnvcc fatal: Unsupported gpu architecture\n",
        "FAILED: ext.o\nx.cpp:3:1: error: 'torch' was not declared\n",
        "ValueError: x\n",
    ],
)
def test_other_logs_are_no_builds(text: str) -> None:
    assert errors_of_build(text) is None
