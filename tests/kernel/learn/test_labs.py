"""Labs: every one really fails, is diagnosed as it says, and works after its fix; users can work through them."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pexpect
import psutil
import pytest

from dtdebug.learn.labs import execute, requirements, verify
from dtdebug_taxonomy.dev import lint_labs
from dtdebug_taxonomy.knowledge import labs
from dtdebug_taxonomy.knowledge.loader import KnowledgeError, load
from dtdebug_taxonomy.model.training import Violation

DTDEBUG = [sys.executable, "-m", "dtdebug"]
LIMIT = 300
"""Seconds that nothing here may take."""
LABS = labs.load_labs()
QUICK = {
    "collective-under-rank-guard", "environment-not-passed-on", "extension-of-another-release",
    "header-in-another-place", "metric-of-one-rank", "no-batch-left-for-a-rank", "port-already-taken",
    "started-without-launcher",
}  # fmt: skip
"""Those that always run: one for each way in which a run is started, ends, or is told."""

FAILS = labs.Lab(
    title="t", symptom="A.2", cause="c", stage="build", difficulty="easy", works="done", hints=("a.", "b.", "c."),
    why="w.", ranks=1, limit_s=60, command=("{python}", "{script}"), needs=labs.Needs(modules=()),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _state(monkeypatch, tmp_path):
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("DTDEBUG_RUN", raising=False)


@pytest.fixture
def script(tmp_path):
    """Writes a script and returns its path."""

    def write(source):
        path = tmp_path / "train.py"
        path.write_text(source, encoding="utf-8")
        return path

    return write


def dtdebug(*arguments, **more):
    """The real command."""
    return subprocess.run([*DTDEBUG, *arguments], capture_output=True, text=True, timeout=LIMIT, check=False, **more)


def at_ends(name):
    return pytest.param(name, id=name, marks=[pytest.mark.ranks, *([] if name in QUICK else [pytest.mark.labs])])


# What labs are


def test_every_named_symptom_has_a_lab():
    """Whatever the study names can be seen."""
    named = {code for code in load().symptoms if not code.endswith("other")}
    assert named == {lab.symptom for lab in LABS.values()}


def test_shipped_labs_are_tidy():
    """No rule for labs is broken."""
    assert [] == list(lint_labs.lab_problems(load()))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"symptom": "X.1"}, "unknown symptom 'X.1'"),
        ({"cause": "bad-luck"}, "D.2.1 has no cause 'bad-luck'"),
        ({"stage": "build"}, "stage 'build'; that of D.2.1 is 'training'"),
        ({"culprit": 3}, "culprit 3 is none of 3 ranks"),
        ({"works": " "}, "works: the text that tells that the work is done"),
        ({"command": ("true",)}, "command: names neither {script} nor {folder}"),
        ({"violates": "luck", "mark": "import"}, "violates: nothing is known by the name 'luck'"),
        ({"mark": "import"}, "mark: the text of a line of before.py, where something is violated"),
        ({"recorded": True}, "recorded = true, but before.txt is missing"),
        ({"why": "because"}, "ends in neither '.' nor '?': 'because'"),
    ],
)
def test_broken_lab_is_told(change, problem):
    """Each rule says what to do."""
    lab = msgspec.structs.replace(LABS["collective-under-rank-guard"], **change)
    assert [problem] == list(lint_labs._record(load(), lab))


def test_folder_without_its_files_is_told(tmp_path):
    """A folder that is no lab yet names what is missing."""
    (tmp_path / "before.py").touch()
    assert ["missing: after.py, lab.toml"] == list(lint_labs._files(tmp_path))


def test_unknown_key_of_a_lab_names_file_and_key(tmp_path):
    """A lab's record is strict."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "lab.toml").write_text('title = "t"\nsize = 3\n')
    with pytest.raises(KnowledgeError, match=r"mine.lab\.toml: .*size"):
        labs.load_labs(tmp_path)


def test_command_is_filled_in():
    """Placeholders become the interpreter, the number of ranks, the script and its folder."""
    lab = msgspec.structs.replace(FAILS, ranks=3, command=("{python}", "{ranks}", "{script}", "{folder}"))
    assert ["py", "3", "/a/train.py", "/a"] == execute.command(lab, Path("/a/train.py"), "py")


# What this machine can do


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({}, ""),
        ({"runs": "gpu"}, "needs GPUs"),
        ({"runs": "cluster"}, "needs several hosts"),
        ({"needs": labs.Needs(modules=("no_such_module",))}, "needs the Python module no_such_module"),
        ({"needs": labs.Needs(modules=(), tools=("no-such-tool",))}, "needs no-such-tool"),
    ],
)
def test_what_is_missing_is_named(change, missing):
    """One phrase for the user."""
    assert missing == requirements.what_is_missing(msgspec.structs.replace(FAILS, **change))


def test_lab_that_misses_something_ends_with_2_and_one_line(tmp_path):
    """Without the compiler, say, there is one line and status 2, not a traceback."""
    ran = dtdebug("lab", "verify", "header-in-another-place", env={**os.environ, "PATH": str(tmp_path)})
    assert (2, "", "dtdebug: lab header-in-another-place: needs cc\n") == (ran.returncode, ran.stdout, ran.stderr)


# A run within bounds


def test_run_that_works_says_so(script):
    """Status 0 and the text of its work."""
    ran = execute.execute(FAILS, script("print('done')"))
    assert (0, True, None, "") == (ran.status, ran.works(FAILS), ran.found, ran.said)


def test_run_that_ends_well_without_its_work_does_not_count(script):
    """An empty program is no solution."""
    assert not execute.execute(FAILS, script("pass")).works(FAILS)


def test_run_that_fails_is_diagnosed(script):
    """The report of `dtdebug run` is there, and what it said."""
    ran = execute.execute(FAILS, script("import no_such_module_here"))
    assert (1, True) == (ran.status, ran.found is not None)
    assert "ModuleNotFoundError" in ran.output


def test_run_is_ended_at_its_limit_with_all_it_has_started(script, tmp_path):
    """Neither the program nor what left its session stays."""
    ran = execute.execute(
        msgspec.structs.replace(FAILS, limit_s=4),
        script(
            "import pathlib, subprocess, time\n"
            "stray = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
            f"pathlib.Path({str(tmp_path / 'stray')!r}).write_text(str(stray.pid))\n"
            "time.sleep(600)\n"
        ),
    )
    assert (None, False) == (ran.status, psutil.pid_exists(int((tmp_path / "stray").read_text())))


def test_run_leaves_no_file_behind(script, tmp_path, monkeypatch):
    """What a run writes goes to a scratch folder, which is removed."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", None)
    path = script("open('left', 'w').close(); print('done')")
    assert execute.execute(FAILS, path).works(FAILS)
    assert ([], ["train.py"]) == (
        list(scratch.iterdir()), sorted(p.name for p in tmp_path.iterdir() if p.is_file()),
    )  # fmt: skip


# Every lab keeps its word


@pytest.mark.parametrize("name", [at_ends(name) for name in LABS])
def test_lab_fails_is_diagnosed_and_works(name, request):
    """Before: the symptom first, the cause among the first two, the culprit; after: all is well and nothing is said."""
    if name not in QUICK and "labs" not in request.config.option.markexpr:
        pytest.skip("takes minutes for all labs: pytest -m labs")
    lab = LABS[name]
    if missing := requirements.what_is_missing(lab):
        pytest.skip(missing)
    halves = verify.verify(lab)
    assert [] == [f"{half.file}: {half.text}\n{half.output}" for half in halves if not half.ok]


def test_script_that_works_too_early_is_told(script):
    """A lab whose first script works teaches nothing."""
    ran = execute.execute(FAILS, script("print('done')"))
    assert "works, although it should fail" == verify._before(FAILS, ran).text


def test_lab_with_another_diagnosis_is_told(script):
    """Symptom and cause are compared with what the lab says."""
    lab = msgspec.structs.replace(FAILS, symptom="D.2.1", cause="uneven-batches")
    held = verify._before(lab, execute.execute(lab, script("import no_such_module_here")))
    assert not held.ok
    assert re.search(r"symptom A\.2 \(.*\), expected D\.2\.1; .*expected uneven-batches", held.text)


def test_lab_that_is_watched_is_named_at_its_line_and_works_only_when_nothing_is_violated(script):
    """What the watch names is compared with the lab: its name, and the line."""
    lab = LABS["every-pass-without-sync"]
    at = next(n for n, text in enumerate(lab.source("before.py").splitlines(), 1) if lab.mark in text)
    seen = Violation(invariant=lab.violates, ranks=(0, 1), step=1, line=at, symptom=lab.symptom, means="m")
    elsewhere = msgspec.structs.replace(seen, line=1)
    other = msgspec.structs.replace(seen, invariant="summed")
    ran = execute.LabRun(status=0, seconds=1, output=lab.works)
    assert verify._before(lab, msgspec.structs.replace(ran, violated=(seen,))).ok
    for violated, said in (((), "works, although"), ((other,), "names summed, not"), ((elsewhere,), "is placed at")):
        assert said in verify._before(lab, msgspec.structs.replace(ran, violated=violated)).text
    assert "the watch names not-reduced" in verify._after(lab, msgspec.structs.replace(ran, violated=(seen,))).text


# What a user does


def test_list_as_json_has_the_promised_keys():
    """Editors read it."""
    rows = json.loads(dtdebug("lab", "list", "--format", "json").stdout)["labs"]
    keys = {"id", "title", "symptom", "cause", "stage", "difficulty", "runs", "recorded", "framework", "ranks"}
    assert (set(LABS), keys | {"limit_s"}) == ({row["id"] for row in rows}, set(rows[0]))


def test_unknown_lab_is_one_line():
    """Status 2 and where to look."""
    ran = dtdebug("lab", "start", "nothing")
    assert (2, "dtdebug: nothing: no such lab; `dtdebug lab list` lists them\n") == (ran.returncode, ran.stderr)


def test_hint_before_any_start_is_one_line():
    """Status 2 and what to do first."""
    ran = dtdebug("lab", "hint")
    assert (2, "dtdebug: lab hint: no lab was started; `dtdebug lab start ID` does\n") == (ran.returncode, ran.stderr)


def test_start_never_overwrites_a_file(tmp_path):
    """A script that is there is the user's work."""
    mine = tmp_path / "mine" / "launch.py"
    mine.parent.mkdir()
    mine.write_text("my work")
    ran = dtdebug("lab", "start", "environment-not-passed-on", str(mine.parent))
    assert (2, "my work") == (ran.returncode, mine.read_text())
    assert "already exists and is left as it is" in ran.stderr


@pytest.mark.terminal
def test_user_breaks_reads_hints_mends_and_solves(tmp_path):
    """In a terminal: start fails and is explained, hints go from vague to exact, the fixed file is solved."""
    name, folder = "environment-not-passed-on", tmp_path / "mine"

    def lab(*arguments, status):
        child = pexpect.spawn(
            sys.executable,
            ["-m", "dtdebug", "lab", *arguments],
            cwd=str(tmp_path),
            timeout=LIMIT,
            encoding="utf-8",
            dimensions=(40, 200),
        )
        try:
            child.expect(pexpect.EOF)
        finally:
            child.close(force=True)
        assert status == child.exitstatus, child.before
        return child.before

    started = lab("start", name, str(folder), status=0)
    assert "No module named 'large_model'" in started
    assert "(A.2)" in started
    assert "It failed (exit status 1)." in started
    assert "Not yet. It failed" in lab("check", status=1)
    hints = [lab("hint", status=0) for _ in range(4)]
    assert [f"hint {n} of 3: {text}" in hints[n - 1] for n, text in enumerate(LABS[name].hints, 1)] == [True] * 3
    assert "+    environment = {**os.environ" in hints[3]
    shutil.copyfile(LABS[name].folder / "after.py", folder / "launch.py")
    solved = lab("check", status=0)
    assert "Solved" in solved
    assert LABS[name].why[:60] in solved
    listed = lab("list", status=0)
    assert re.search(rf"{name} .* solved ", listed)


@pytest.mark.ranks
def test_a_request_to_end_ends_what_was_started():
    """SIGTERM to the command leaves no process of the job behind."""
    with subprocess.Popen(
        [*DTDEBUG, "lab", "verify", "loader-starves-the-ranks"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as command:
        try:
            until = time.monotonic() + LIMIT
            family = []
            while len(family) < 2 and time.monotonic() < until:
                time.sleep(0.2)
                family = psutil.Process(command.pid).children(recursive=True)
            command.terminate()
            assert 128 + signal.SIGTERM == command.wait(LIMIT)
        finally:
            command.kill()
    assert [] == psutil.wait_procs(family, timeout=LIMIT)[1]


def test_state_that_cannot_be_written_does_not_stop_a_lab(tmp_path):
    """Progress is then lost, the lab runs."""
    (tmp_path / "file").touch()
    ran = dtdebug(
        "lab", "start", "environment-not-passed-on", str(tmp_path / "mine"),
        env={**os.environ, "DTDEBUG_STATE": str(tmp_path / "file" / "state")},
    )  # fmt: skip
    assert (0, True) == (ran.returncode, (tmp_path / "mine" / "launch.py").is_file())
