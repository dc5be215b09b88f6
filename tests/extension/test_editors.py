"""What users of real editors see: Neovim and Emacs without their windows, JupyterLab in Chromium."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from places import TESTS

pytest.importorskip("pygls")
HERE = TESTS / "editors"
pytestmark = pytest.mark.editors

PROGRAM = (
    "from torch.nn.parallel import DistributedDataParallel\nimport torch\nimport torch.distributed as dist\n"
    'def f(x, world):\n    if dist.get_rank() == 0:\n        y = "é😀"; dist.barrier()\n'
    '    z = "é😀"; parts = [torch.zeros_like(x)] * world\n    dist.all_gather(parts, x)\n'
)
GUARDED, ALIASED = (5, '        y = "é😀"; '), (6, '    z = "é😀"; parts = ')
SECONDS = 90


def run(command, tmp_path):
    """What an editor prints, run in its own process group."""
    program = tmp_path / "train.py"
    program.write_text(PROGRAM, encoding="utf-8")
    environment = os.environ | {
        "PROGRAM": str(program),
        "PYTHON": sys.executable,
        "DTDEBUG_STATE": str(tmp_path / "state"),
        "HOME": str(tmp_path),
        "LC_ALL": "C.UTF-8",
    }
    with (tmp_path / "errors").open("wb") as errors:
        editor = subprocess.Popen(
            command,
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
        try:
            printed, _ = editor.communicate(timeout=SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(editor.pid, signal.SIGKILL)
            editor.wait(10)
    lines = [line for line in printed.decode().splitlines() if line.startswith("{")]
    assert lines, (tmp_path / "errors").read_text(errors="replace")[-3_000:]
    return json.loads(lines[-1])


@pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim is not installed")
def test_neovim_shows_hovers_and_fixes(tmp_path):
    """Columns are bytes in Neovim, though the protocol told it UTF-16."""
    seen = run(["nvim", "--headless", "-u", "NONE", "-n", "-c", f"luafile {HERE / 'neovim.lua'}"], tmp_path)
    expected = [
        {"line": line, "column": len(before.encode()), "code": code, "source": "dtdebug"}
        for (line, before), code in ((GUARDED, "DT101"), (ALIASED, "DT401"))
    ]

    assert expected == seen["opened"]
    assert "DistributedDataParallel" in seen["hover"] or "distributed" in seen["hover"]
    assert [row | {"line": row["line"] + 1} for row in expected] == seen["moved"]
    assert ["DT101"] == [row["code"] for row in seen["fixed"]]
    assert "] * world" not in seen["text"]
    assert '# "é😀"\n' in seen["text"]
    assert seen["moved"] == seen["undone"]


@pytest.mark.skipif(
    shutil.which("emacs") is None or not list(Path("/usr/share/emacs/site-lisp/elpa").glob("eglot*")),
    reason="Emacs with Eglot is not installed",
)
def test_emacs_shows_hovers_and_fixes(tmp_path):
    seen = run(["emacs", "--batch", "-Q", "-l", str(HERE / "emacs.el")], tmp_path)

    assert [GUARDED[0], ALIASED[0]] == [row["line"] for row in seen["opened"]]
    assert ["DT101", "DT401"] == [code for row in seen["opened"] for code in ("DT101", "DT401") if code in row["text"]]
    assert "distributed" in seen["hover"].lower()
    assert [GUARDED[0] + 1, ALIASED[0] + 1] == [row["line"] for row in seen["moved"]]
    assert any("ignore DT401" in title for title in seen["actions"])
    assert "] * world" not in seen["text"]
