"""`dtdebug fix --try`: the job runs in a copy with the diff, and the answer keeps what came of it."""

import json
import os
import subprocess
import sys

import pytest

from dtdebug.experiments.trial.patch import PatchError, apply_patch

PROGRAM = """import pathlib

config = {"lr": 0.1, "steps": 3}


def main():
    pathlib.Path("written.txt").write_text("x")
    rate = config["LR"]
    %s


main()
"""
LATER = "raise ValueError('no data for these steps')"
PATCH = "--- a/x\n+++ b/x\n@@ -2,2 +2,3 @@\n b\n-c\n+C\n+D\n"


def dtdebug(folder, *words):
    env = {**os.environ, "DTDEBUG_STATE": str(folder / "state"), "COLUMNS": "80"}
    home = folder / "home"
    return subprocess.run(
        [sys.executable, "-m", "dtdebug", *words],
        check=False,
        cwd=home,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )


def failed(folder, rest="print(rate)"):
    home = folder / "home"
    home.mkdir()
    (home / "train.py").write_text(PROGRAM % rest)
    ran = dtdebug(folder, "run", "--", sys.executable, "train.py")
    assert '+ rate = config["lr"]' in ran.stderr
    (home / "written.txt").unlink()
    return home


def test_a_diff_with_which_the_job_ends_well_is_proven_and_the_folder_is_as_it_was(tmp_path):
    """The command is that of the last run; the answer says from then on that the fix is proven."""
    home = failed(tmp_path)
    before = (home / "train.py").read_text()
    tried = dtdebug(tmp_path, "fix", "--try")
    assert (0, "") == (tried.returncode, tried.stderr)
    assert "\nProven: with this diff the job succeeds after " in tried.stdout
    assert "it failed at train.py:8." in tried.stdout
    assert before == (home / "train.py").read_text()
    assert ["train.py"] == [path.name for path in home.iterdir()]
    assert "Proven: with this diff the job succeeds" in dtdebug(tmp_path, "why").stdout
    run = next((tmp_path / "state" / "runs").glob("run-*"))
    answer = json.loads(dtdebug(tmp_path, "--format", "json", str(run)).stdout)["answer"]
    assert ("certain", True) == (answer["sure"], answer["fix"].get("proven", True))
    assert answer["fix"]["tried"].startswith("with this diff")


def test_a_diff_that_leads_to_the_next_failure_is_not_proven(tmp_path):
    """It says how far the job got, and the exit status is 1."""
    failed(tmp_path, LATER)
    tried = dtdebug(tmp_path, "fix", "--try", "--", sys.executable, "train.py")
    assert 1 == tried.returncode, tried.stderr
    assert "Not proven: with this diff the job gets past train.py:8 and fails later: " in tried.stdout
    assert "no data for these steps" in tried.stdout
    assert "Not proven: " in dtdebug(tmp_path, "why").stdout


def test_a_job_that_does_not_end_is_ended_in_time(tmp_path):
    """Nothing is claimed of a job that still runs."""
    failed(tmp_path, "import time; time.sleep(300)")
    tried = dtdebug(tmp_path, "fix", "--within", "8", "--try")
    assert 1 == tried.returncode, tried.stderr
    assert "Not proven: " in tried.stdout


def test_a_file_that_has_changed_since_is_not_patched(tmp_path):
    """The diff applies to the lines that failed, and to no others."""
    home = failed(tmp_path)
    (home / "train.py").write_text("\n" + PROGRAM % "pass")
    tried = dtdebug(tmp_path, "fix", "--try")
    assert (2, "") == (tried.returncode, tried.stdout)
    assert "train.py: line 5 is not as it was when the job failed" in tried.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("fix", "--try"), "fix --try: name the job"),
        (("fix", "--try", "--", "no-such-command"), "command not found"),
        (("fix", "--try", "--", sys.executable, "x.py"), "the last answer has no diff"),
        (("fix", "--write", "--try"), "--write is for afterwards"),
        (("fix", "--within", "0", "--try"), "more than 0 seconds"),
        (("fix", "--", "true"), "with --try only"),
    ],
)
def test_what_can_not_be_tried_is_one_line(tmp_path, words, says):
    """Nothing is started."""
    (tmp_path / "home").mkdir()
    ran = dtdebug(tmp_path, *words)
    assert (2, "") == (ran.returncode, ran.stdout)
    assert says in ran.stderr
    assert 1 == ran.stderr.count("\n")


@pytest.mark.parametrize(
    ("text", "after"), [("a\nb\nc\n", "a\nb\nC\nD\n"), ("a\r\nb\r\nc\r\ne", "a\r\nb\r\nC\r\nD\r\ne")]
)
def test_a_diff_changes_its_own_lines_only(text, after):
    """Line ends stay those of the file."""
    assert after == apply_patch(text, PATCH)


@pytest.mark.parametrize("text", ["a\nb\n", "b\nc\n", ""])
def test_a_diff_of_other_lines_is_refused(text):
    """A diff is never applied elsewhere than at its own lines."""
    with pytest.raises(PatchError):
        apply_patch(text, PATCH)
