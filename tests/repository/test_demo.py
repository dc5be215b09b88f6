"""`make demo`, which the README promises on a fresh machine, does what it says."""

import os
import subprocess
import sys

import pytest
from places import ROOT

DEMO = ROOT / "docs" / "demo.py"


@pytest.mark.ranks
@pytest.mark.kernel
def test_the_demo_breaks_explains_and_mends_two_runs(tmp_path):
    """It applies the fixes that it shows, and its status says whether the runs work then."""
    pytest.importorskip("torch")
    pytest.importorskip("ipykernel")
    done = subprocess.run(
        [sys.executable, str(DEMO)],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert 0 == done.returncode, done.stdout[-3_000:]
    assert "2 of 2 runs failed, were explained, and work after the fix" in done.stdout
