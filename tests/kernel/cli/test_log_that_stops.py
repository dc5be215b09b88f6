"""A log that just ends: a process that still writes it shows whether its job runs or stands."""

import json
import os
import subprocess
import sys
import time

import pytest

from dtdebug.cli.main import main

WRITES = """\
import sys, time
for step in range(37):
    print(f"step {step} loss {3 - step / 50:.3f}", flush=True)
print("ready", file=sys.stderr, flush=True)
time.sleep(60)
"""


@pytest.fixture
def log(tmp_path):
    """A log that a living process has open."""
    with (tmp_path / "train.log").open("w") as out:
        job = subprocess.Popen([sys.executable, "-c", WRITES], stdout=out, stderr=subprocess.PIPE)
    try:
        assert job.stderr.readline() == b"ready\n"
        yield tmp_path / "train.log"
    finally:
        job.kill()
        job.communicate(timeout=10)


def told(capsys, *words):
    status = main([*map(str, words)])
    out, err = capsys.readouterr()
    return status, " ".join(out.split()), err


@pytest.mark.parametrize("words", [(), ("triage",)])
def test_a_log_that_is_written_is_that_of_a_job_that_runs(words, log, capsys):
    status, shown, aside = told(capsys, *words, log)

    assert status == 0
    assert "without a sign of an end" not in shown
    assert "ends at step 36; process " in aside
    assert "the job still runs" in aside


def test_a_log_that_is_open_and_not_written_is_that_of_a_job_that_may_hang(log, capsys):
    os.utime(log, (time.time() - 900,) * 2)
    status, shown, _ = told(capsys, log)

    assert status == 1
    assert "The log ends at step 36; nothing was written for 15 min, and process " in shown
    assert "it hangs, or is in a long evaluation or checkpoint" in shown


def test_a_log_that_nobody_writes_is_not_called_failed(tmp_path, capsys):
    """It is not known whether its job failed: programs are told the same."""
    for rank in range(2):
        rows = (f"step {step} loss {3 - step / 50:.3f}\n" for step in range(37))
        (tmp_path / f"rank{rank}.log").write_text("".join(rows))
    for words in ((tmp_path / "rank0.log",), (tmp_path,)):
        assert "without a sign of an end" in told(capsys, *words)[1]
        status, shown, _ = told(capsys, "triage", "--format", "json", *words)
        assert status == 1
        assert json.loads(shown)["status"] == "not_understood"


def test_a_warning_of_python_is_no_sign_of_an_end(tmp_path, capsys):
    """A tracker of resources warns when its process was killed, too."""
    warns = (
        "/usr/lib/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 56 "
        "leaked semaphore objects to clean up at shutdown\n  warnings.warn('resource_tracker: There appear to be %d '\n"
    )
    steps = "".join(f"INFO [step={step}/2500,epoch=1]\n    total_tokens={step}\n" for step in range(1900, 2003))
    (tmp_path / "train.log").write_text(steps + 4 * warns)
    status, shown, _ = told(capsys, tmp_path / "train.log")
    assert status == 1
    assert "ends at step 2002 without a sign of an end" in shown
