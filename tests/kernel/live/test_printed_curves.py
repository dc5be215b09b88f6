"""`dtdebug run`: faults in the curves that a job prints, while it runs and at its end."""

import json
import os
import subprocess
import sys

import pytest

from dtdebug.live.job import printed_curves
from dtdebug.live.job.output_store import Copy
from dtdebug.live.job.printed_curves import PrintedCurves, final_lines

JOB = """
import math, sys
for step in range(60):
    loss = math.nan if sys.argv[1] != "healthy" and step >= 30 else 3 * 0.97**step
    print(f"step {step} loss={loss:.4f} lr={0 if sys.argv[1] == 'rate' and step > 20 else 1e-3:g}")
if sys.argv[1] == "raises":
    raise ValueError("labels out of range")
"""


@pytest.fixture(autouse=True)
def _state(monkeypatch, tmp_path):
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))


def run(how, *options):
    command = [sys.executable, "-m", "dtdebug", "run", *options, "--", sys.executable, "-c", JOB, how]
    utf = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(command, capture_output=True, encoding="utf-8", env=utf, timeout=120, check=False)


def test_a_job_that_ends_well_with_a_broken_loss_gets_the_curve_as_its_answer():
    """Its exit status stays its own."""
    done = run("broken")
    assert done.returncode == 0
    assert "The loss is NaN from step 30" in done.stderr
    assert "▁\u00d7" in done.stderr


def test_below_a_failure_the_curve_is_a_line_with_its_picture(tmp_path):
    """The exception is the answer; the JSON has the curve as a note."""
    done = run("raises")
    assert done.returncode == 1
    first, found, rest = " ".join(done.stderr.split()).partition("dtdebug: ValueError: labels out of range")
    assert found
    assert "NaN" not in first
    assert rest.count("Curves: The loss is NaN from step 30") == 1
    assert "▁\u00d7" in rest
    report = tmp_path / "report.json"
    run("raises", "--format", "json", "--output", str(report))
    assert any("NaN from step 30" in note for note in json.loads(report.read_text())["notes"])


def test_healthy_curves_are_reported_to_a_watch_alone():
    """A plain run that ends well prints nothing."""
    assert run("healthy").stderr == ""
    assert "nothing found in" in run("healthy", "--watch").stderr


def lines(begin, end, broken=40):
    return "".join(f"step {n} loss={'nan' if n >= broken else 3 * 0.97**n}\n" for n in range(begin, end)).encode()


@pytest.fixture
def now(monkeypatch):
    monkeypatch.setattr(printed_curves, "_PAUSE", 0.0)
    monkeypatch.setattr(printed_curves, "_SHARE", 1e9)
    return float("1e12")


def test_a_fault_is_said_once_and_only_when_it_is_seen_again(tmp_path, now):
    """NaN of a few steps may be skipped by a loss scale; more steps later it is a fault."""
    copy = Copy(tmp_path / "output")
    curves = PrintedCurves(tmp_path / "output")
    said = []
    for begin in range(0, 80, 10):
        copy.add(b"1 ", lines(begin, begin + 10))
        copy.flush()
        said.append(curves.look(now))
    assert [bool(new) for new in said] == [False] * 5 + [True, False, False]
    assert "NaN from step 40" in said[5][0]
    copy.finish()
    assert curves.reading().faulty


def test_a_copy_that_is_shortened_while_it_is_read_loses_no_step(tmp_path, now, monkeypatch):
    """The copy's middle is dropped and its file replaced: what was read before stays, what comes after is found."""
    monkeypatch.setattr("dtdebug.live.job.output_store.HEAD", 4 << 10)
    monkeypatch.setattr("dtdebug.live.job.output_store.TAIL", 8 << 10)
    monkeypatch.setattr("dtdebug.live.job.output_store.MIDDLE", 1 << 10)
    copy = Copy(tmp_path / "output")
    curves = PrintedCurves(tmp_path / "output")
    for begin in range(0, 4000, 50):
        copy.add(b"1 " if begin % 100 else b"2 ", lines(begin, begin + 50, broken=9000))
        copy.flush()
        curves.look(now)
    assert (tmp_path / "output").stat().st_size < 40 << 10
    copy.add(b"1 ", b"step 4000 loss=0.1")
    copy.finish()
    (curve,) = curves.reading().curves
    assert list(curve.steps) == list(range(4001))


def test_a_job_without_curves_says_nothing(tmp_path, now):
    """Nor does one that printed nothing, or whose copy could not be written."""
    none = PrintedCurves(tmp_path / "none")
    assert (none.look(now), none.reading()) == ([], None)
    (tmp_path / "output").write_bytes(b"1 hello\n~ [dtdebug: about 9 bytes are left out here]\n")
    curves = PrintedCurves(tmp_path / "output")
    assert curves.look(now) == []
    assert final_lines(curves.reading(), healthy=True, full=True) == ""
