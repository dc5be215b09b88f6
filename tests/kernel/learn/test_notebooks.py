"""The learning notebooks: each one really runs, shows what it tells, and is what its source makes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec

import psutil
import pytest
from places import ROOT

from dtdebug.learn import answer
from dtdebug.learn.answers import check_answer, questions
from dtdebug.learn.notebooks import copy, list_notebooks

FOLDER = ROOT / "kernel/dtdebug/learn/notebooks"
CELL, BOUND = 120, 300
"""Seconds for one cell, and for a whole notebook, on a busy machine."""
EVIDENCE = {
    "first-failure": (
        "Can't get attribute 'greet'",
        "can't run `greet`: it is defined in a notebook cell",
        "Fix cell In[2], line 5: Start the processes as forks of this kernel. - mp.spawn(greet, nprocs=2)",
        "rank 0 knows the sum: 3",
        "rank 1 knows the sum: 3",
    ),
    "who-was-first": (
        "[rank1]: KeyError: 'price'",
        "Rank 1 raised KeyError: 'price'",
        "rank 1 prices.py:",
        "sale 1: rank 0 knows the total 60",
    ),
    "hang": (
        "dtdebug: `enumerate(BATCHES[rank])` has 2 passes on rank 1, 3 passes on rank 0 (uneven.py:13)",
        "rank 0 uneven.py:15 called all_reduce #3",
        "Timed out waiting 8000ms",
        "Rank 1 never called all_reduce #3",  # below the time-out: what was seen before counts
        "Edit uneven.py:7, so that all ranks make equally many passes",
        "rank 1: batch 2 is done",
    ),
    "memory-and-nan": (
        "Why Several processes have put their model or buffers on the same GPU.",
        "Training does not learn, diverges, or ends with low accuracy (D.2.5)",
        "Half precision overflows in the larger or summed gradients",
        "step 3: rank 0 has loss 0.2100",
    ),
    "read-a-log": (
        "Why The host memory of the machine, container or job is too small for all ranks.",
        "dtdebug: Rank 5 ",
        "No known failure in",
    ),
}
"""Notebook -> what must be read below its cells."""
notebooks = pytest.mark.parametrize("notebook", list_notebooks(), ids=lambda n: n.id)


def cells(path, kind="code"):
    return [c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == kind]


def source(cell):
    return "".join(cell["source"])


def shown(path):
    """All that stands below the cells of a notebook that was run, in one line."""
    parts = []
    for output in (o for cell in cells(path) for o in cell["outputs"]):
        texts = output.get("text") or output.get("data", {}).get("text/plain") or output.get("traceback") or ""
        parts.append("".join(texts))
    return " ".join(re.sub(r"\x1b\[[\d;]*m", "", "\n".join(parts)).split())


@pytest.fixture(scope="module")
def seconds():
    """Seconds that each notebook took; the sum is printed at the end."""
    taken = {}
    yield taken
    print(f"\n{len(taken)} notebooks took {sum(taken.values()):.0f} s")


@pytest.fixture
def execute(tmp_path, seconds):
    """Runs a notebook with nbmake and gives the path of what came of it."""

    def run(notebook):
        path = copy(notebook.id, tmp_path / "learn")
        _kernel(tmp_path / "kernels/python3")
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_", "DTDEBUG_"))},
            "DTDEBUG_STATE": str(tmp_path / "state"),
            "IPYTHONDIR": str(tmp_path / "ipython"),
            "JUPYTER_PATH": str(tmp_path),
            "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
            "OMP_NUM_THREADS": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # others wrap the calls of functions and stumble over notebooks
        }
        options = ["-p", "nbmake.pytest_plugin", "--nbmake", "--overwrite", f"--nbmake-timeout={CELL}"]
        bare = ["-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={tmp_path}"]
        command = [sys.executable, "-m", "pytest", "-q", *options, *bare, str(path)]
        begin = time.monotonic()
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=-1, stderr=-2, text=True, start_new_session=True
        ) as job:
            try:
                printed, _ = job.communicate(timeout=BOUND)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(job.pid, signal.SIGKILL)
        seconds[notebook.id] = time.monotonic() - begin
        print(f"\n{notebook.file} took {seconds[notebook.id]:.0f} s")
        assert job.returncode == 0, printed[-4000:]
        return path

    return run


def _kernel(folder):
    """A kernel that does not know of pytest: below it, ipykernel shows nothing of what ranks print."""
    plain = ["/usr/bin/env", "-u", "PYTEST_CURRENT_TEST", sys.executable, "-m", "ipykernel_launcher"]
    folder.mkdir(parents=True)
    about = {"argv": [*plain, "-f", "{connection_file}"], "display_name": "Python 3", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(about))


def running(state):
    """Processes that were started with a state directory."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("DTDEBUG_STATE") == str(state) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@pytest.mark.kernel
@pytest.mark.ranks
@notebooks
def test_a_notebook_shows_what_it_tells_and_leaves_no_process(notebook, execute, tmp_path):
    for module in ("nbmake", "torch"):
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    text = shown(execute(notebook))
    for evidence in EVIDENCE[notebook.id]:
        assert evidence in text, text[-6000:]
    assert questions()[notebook.id].asks in text, "its question stands at the end"
    _, left = psutil.wait_procs(running(tmp_path / "state"), timeout=10)
    assert [] == left


def test_notebooks_are_what_their_sources_make():
    pytest.importorskip("jupytext")
    command = [sys.executable, str(ROOT / "docs/notebooks.py"), "--check"]
    made = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert made.returncode == 0, f"python docs/notebooks.py writes them\n{made.stdout}{made.stderr}"


def test_the_list_names_every_notebook_once():
    assert sorted(path.name for path in FOLDER.glob("*.ipynb")) == [n.file for n in list_notebooks()]
    assert sorted(path.name for path in FOLDER.glob("*.py")) == [f"{n.stem}.py" for n in list_notebooks()]
    assert list(range(1, 6)) == [n.number for n in list_notebooks()]


@notebooks
def test_a_notebook_is_short_and_comes_without_output(notebook):
    path = FOLDER / notebook.file
    code = cells(path)
    assert len(code) <= 8
    assert all(not c["outputs"] and c["execution_count"] is None for c in code)
    ids = [c["id"] for c in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    assert len(ids) == len(set(ids))


@notebooks
def test_a_notebook_begins_with_its_title_and_what_the_reader_needs(notebook):
    first = source(cells(FOLDER / notebook.file, "markdown")[0])
    assert first.startswith(f"# {notebook.number}. {notebook.title}\n")
    assert "> **What you will learn**" in first
    assert "> **What you need**" in first


@notebooks
def test_a_failing_cell_is_announced_and_lets_the_others_run(notebook):
    for number, cell in enumerate(every := json.loads((FOLDER / notebook.file).read_text())["cells"]):
        if "raises-exception" in cell["metadata"].get("tags", ()):
            assert "on\n> purpose" in source(every[number - 1]) or "on purpose" in source(every[number - 1])


@notebooks
def test_what_is_recorded_is_called_so_above_it(notebook):
    every = json.loads((FOLDER / notebook.file).read_text(encoding="utf-8"))["cells"]
    recorded = [i for i, c in enumerate(every) if source(c).startswith("%%writefile recorded_")]
    for i in recorded:
        before = source(every[i - 1])
        assert re.search(r"^## .*\(recorded\)$", before, re.MULTILINE), before
    if recorded:
        assert "https://github.com/" in source(every[recorded[0] - 1]), "a real case is named"
    assert bool(recorded) == (notebook.id in ("memory-and-nan", "read-a-log"))


@notebooks
def test_a_notebook_ends_with_a_question_whose_answer_is_not_in_it(notebook):
    path = FOLDER / notebook.file
    asked = questions()[notebook.id]
    assert source(cells(path)[-1]).endswith(f'answer("{notebook.id}", "...")')
    assert asked.why not in path.read_text(encoding="utf-8")
    assert f"**{asked.asks}**" in source(cells(path, "markdown")[-2]).replace("`", "")


@pytest.mark.parametrize("name", questions())
def test_a_right_answer_says_why_and_a_wrong_one_gives_a_hint_that_does_not_tell(name):
    asked = questions()[name]
    assert f"Right: {asked.why}" == check_answer(name, asked.right)
    assert f"Right: {asked.why}" == check_answer(name, f" {asked.choices[asked.right].upper()}. ")
    assert set(asked.hints) == set(asked.choices) - {asked.right}
    for wrong in asked.hints:
        said = check_answer(name, wrong)
        assert said.startswith("Not quite. ")
        assert asked.choices[asked.right] not in said
        assert asked.why not in said


@pytest.mark.parametrize("given", ["", "...", "z", 3.5, None, "\x1b[31m"])
def test_what_is_no_answer_gets_the_question_and_its_choices(given):
    said = check_answer("first-failure", given)
    assert said.startswith(questions()["first-failure"].asks)
    assert "  b: it was in no file that they could import" in said


@pytest.mark.parametrize("given", ["rank 1", "Rank 1", "1", 1, "'rank 1'"])
def test_a_rank_may_be_given_as_a_number(given):
    assert check_answer("who-was-first", given).startswith("Right")


def test_an_unknown_question_gets_the_list(capsys):
    answer("who", "rank 1")
    assert f"There is no question 'who'. There are: {', '.join(questions())}.\n" == capsys.readouterr().out


def test_a_copy_never_overwrites(tmp_path):
    first = copy("hang", tmp_path / "new" / "folder")
    first.write_text("mine")
    second = copy("3", tmp_path / "new" / "folder")
    third = copy("03_hang.ipynb", tmp_path / "new" / "folder")
    assert ["03_hang.ipynb", "03_hang-2.ipynb", "03_hang-3.ipynb"] == [p.name for p in (first, second, third)]
    assert "mine" == first.read_text()
    assert (FOLDER / "03_hang.ipynb").read_bytes() == second.read_bytes() == third.read_bytes()


@pytest.mark.parametrize("name", ["", "hangs", "0", "../03_hang", "03_hang.py"])
def test_an_unknown_notebook_is_refused_with_the_names_that_there_are(tmp_path, name):
    with pytest.raises(KeyError, match="first-failure, who-was-first, hang, memory-and-nan, read-a-log"):
        copy(name, tmp_path)
    assert [] == list(tmp_path.iterdir())
