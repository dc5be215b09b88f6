"""`diagnose` and `triage` of the same log say the same: one reading serves both."""

import re
from zlib import crc32

import pytest
from places import TESTS

from dtdebug.cli import main

SAMPLES = sorted(f for f in (TESTS / "samples").glob("*/*.txt") if not f.name.endswith(".said.txt"))
EVERY = 14
"""One of so many samples is asked: about twenty of all symptoms, drawn by name, so that a new one moves no other."""
ONCE_DIFFERENT = {"horovod-mismatched-shapes", "nccl-wrap-network", "ssh-question", "one-process-zerodivisionerror"}
"""Of each way in which the two differed one sample is asked always."""

CANCELLED = """\
iteration 10 | loss 2.31
iteration 11 | loss 2.30
srun: Job step aborted: Waiting up to 62 seconds for job step to finish.
slurmstepd: error: *** STEP 77.0 ON n1 CANCELLED AT 2026-05-23T08:45:57 ***
Main process received SIGTERM, exiting
slurmstepd: error: *** JOB 77 ON n1 CANCELLED AT 2026-05-23T08:45:57 ***
"""
WENT_ON = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/job/train.py", line 9, in main
[rank1]:     fetch(url)
[rank1]: RuntimeError: temporary network disturbance
[rank1]: iteration 11 | loss 2.31
[rank1]: iteration 12 | loss 2.30
[rank1]: iteration 13 | loss 2.29
[rank2]: Traceback (most recent call last):
[rank2]:   File "/job/train.py", line 20, in main
[rank2]:     loss.backward()
[rank2]: RuntimeError: CUDA error: an illegal memory access was encountered
"""


@pytest.fixture(autouse=True)
def _state(monkeypatch, tmp_path):
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))


def what_is_said(capsys, command, file):
    """What a command says before its next step: event, places, cause, fix."""
    main.main([command, str(file)])
    told = capsys.readouterr().out
    return " ".join(re.split(r"(?m)^(?:Next|more:)", told)[0].split())


@pytest.mark.parametrize(
    "file",
    [f for f in SAMPLES if crc32(f.stem.encode()) % EVERY == 0 or f.stem in ONCE_DIFFERENT],
    ids=lambda f: f.stem,
)
def test_both_say_the_same(capsys, file):
    """Whatever the log shows."""
    assert what_is_said(capsys, "diagnose", file) == what_is_said(capsys, "triage", file)


def test_an_exception_after_which_training_went_on_explains_nothing_in_either(capsys, tmp_path):
    """The later failure of another rank is what ended the job."""
    file = tmp_path / "job.log"
    file.write_text(WENT_ON)

    (told,) = {what_is_said(capsys, command, file) for command in ("diagnose", "triage")}
    assert told.startswith("dtdebug: Rank 2 raised RuntimeError: CUDA error: an illegal memory access")
    assert "disturbance" not in told


def test_an_end_from_outside_is_the_answer_of_both_with_what_to_do_about_it(capsys, tmp_path):
    """No rank failed: who cancelled the job is to be asked, and not the network."""
    file = tmp_path / "job.log"
    file.write_text(CANCELLED)

    (told,) = {what_is_said(capsys, command, file) for command in ("diagnose", "triage")}
    assert told.startswith("dtdebug: The job or step was cancelled; no rank failed before.")
    main.main(["diagnose", str(file)])
    assert "Next  See who cancelled it with `sacct -j JOB`." in capsys.readouterr().out
