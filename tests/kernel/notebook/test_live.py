"""Parts of the notebook's live side that need no kernel: names of cells, environment, journal, what is shown."""

import os
import re
import sys
import time
from types import SimpleNamespace

import psutil
import pytest

from dtdebug.notebook import cell_journal, kernel_death, leftover_ranks, magic_ranks, observe_ranks, render_ranks
from dtdebug.notebook.arm import ImportWatch, Variables
from dtdebug.notebook.cells import Cells, RunningCell
from dtdebug.notebook.control_channel import answer
from dtdebug.notebook.observe_ranks import forget_earlier
from dtdebug.notebook.ranks_seen import RanksSeen
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.model.ranks import CallSite, Frame, Group, Operation, RankState, Verdict
from dtdebug_taxonomy.model.snapshot import Gpu

FILE = f"/tmp/ipykernel_{os.getpid()}/123.py"


@pytest.fixture
def cells():
    labels = {FILE: ("Cell", "In[12]")}
    return Cells(SimpleNamespace(compile=SimpleNamespace(format_code_name=labels.get)))


def test_files_of_cells_get_the_names_that_the_user_sees(cells):
    """Alone, in a text, in a record, and where a kernel of another rank ran the same cell."""
    state = RankState(rank=0, stack=(Frame(FILE, 3, "<module>"), Frame("/job.py", 1, "f")))
    verdict = Verdict(kind="none", summary=f"It is in {FILE}:3 in f.", sites=(CallSite(0, FILE, 3, "f"),))

    assert cells.rename_cells(state).stack[0].file == "cell In[12]"
    assert cells.rename_cells(state).stack[1].file == "/job.py"
    assert cells.rename_cells(verdict).summary == "It is in cell In[12], line 3 in f."
    assert cells.name("/tmp/ipykernel_1/123.py") == "cell In[12]"
    assert cells.name("/tmp/ipykernel_1/4.py") == ""
    assert cells.text("File /tmp/ipykernel_1/4.py") == "File /tmp/ipykernel_1/4.py"


def test_a_shell_that_does_not_name_its_cells_is_left_alone():
    """Another shell, another release."""
    assert Cells(SimpleNamespace()).name(FILE) == ""
    assert Cells(SimpleNamespace(compile=SimpleNamespace(format_code_name=lambda: 1))).text(f"{FILE}:3") == f"{FILE}:3"


def test_the_environment_is_as_before_even_if_others_changed_it_meanwhile():
    """Their values stay, ours go; a list of paths loses our part alone."""
    environment = {"PYTHONPATH": "/a", "KEPT": "1", "CHANGED": "1"}
    before, variables = dict(environment), Variables(environment)
    variables.put({"PYTHONPATH": f"/ours{os.pathsep}/a", "KEPT": "2", "CHANGED": "2", "NEW": "x"}, before)
    environment["CHANGED"] = "theirs"
    environment["PYTHONPATH"] += f"{os.pathsep}/theirs"
    variables.undo()

    assert environment == {"PYTHONPATH": f"/a{os.pathsep}/theirs", "KEPT": "1", "CHANGED": "theirs"}


def test_the_journal_tells_what_ran(tmp_path):
    """The number, the text and whether it ended; a long cell is cut, a short one does not keep the end of a long."""
    noted = cell_journal.Journal(tmp_path, "kernel-1.json")
    noted.begins(7, "x" * 10_000)
    long = cell_journal.read_journal(tmp_path)
    noted.begins(8, "a = 1\nb = 2")
    running = cell_journal.read_journal(tmp_path)
    noted.ends()

    assert (7, True) == (long.number, long.running)
    assert len(long.source) < 4096
    assert ("kernel-1.json", os.getpid(), 8, "a = 1\nb = 2") == (
        running.kernel,
        running.pid,
        running.number,
        running.source,
    )
    assert not cell_journal.read_journal(tmp_path).running


def test_the_journal_tells_the_files_of_earlier_cells(tmp_path):
    """Of the last ones; a text that ran twice has its last number, and a long name is left out."""
    noted = cell_journal.Journal(tmp_path, "kernel-1.json")
    noted.begins(500, "train()")
    for number in range(1, 500):
        noted.note_file(number, f"/tmp/ipykernel_7/{number}.py")
    noted.note_file(499, "/tmp/ipykernel_7/480.py")
    noted.note_file(498, "/tmp/ipykernel_7/" + "1" * 40 + ".py")

    assert {f"{number}.py": number for number in range(372, 499)} | {"480.py": 499} == cell_journal.read_journal(
        tmp_path
    ).files
    assert "train()" == cell_journal.read_journal(tmp_path).source


@pytest.mark.parametrize("data", [b"", b"\0" * 4096, b"1\nx\ny\nz\n1\n", b"1\n2\n3", b"\xff" * 5000])
def test_a_journal_of_no_use_is_none(tmp_path, data):
    """Whoever wrote it."""
    (tmp_path / cell_journal.NAME).write_bytes(data)

    assert cell_journal.read_journal(tmp_path) is None
    assert cell_journal.read_journal(tmp_path / "nowhere") is None


def test_only_a_death_within_a_cell_is_told(tmp_path, monkeypatch):
    """Not one of another kernel, not the end of an idle one, not this process."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path))
    folder = cell_journal.folders() / "run-a"
    folder.mkdir(parents=True)
    file = folder / cell_journal.NAME
    gone = 2**22 + 1  # above the highest process id
    file.write_text(f"1\n{gone}\nk.json\n5\n{time.time():.0f}\nx = 1")

    assert cell_journal.find_dead_kernel("k.json")[1].number == 5
    assert cell_journal.find_dead_kernel("other.json") is None
    file.write_text(f"0\n{gone}\nk.json\n5\n1\nx = 1")
    assert cell_journal.find_dead_kernel("k.json") is None
    cell_journal.prune()
    assert not folder.exists()


def test_what_earlier_jobs_left_is_forgotten(tmp_path):
    """Records of the living and files of the job at hand stay."""
    run = RunFolder.make(tmp_path)
    gone = 2**22 + 1
    for pid in (os.getpid(), gone, gone + 1):
        run.save_record(RankState(rank=0, pid=pid))
    (run.flight / "rank_0").write_bytes(b"")
    old = time.time() - 1_000
    for path in (run.record_path(gone), run.flight / "rank_0"):
        os.utime(path, (old, old))
    forget_earlier(run, [], time.time() - 100)

    assert {os.getpid(), gone + 1} == {record.pid for record in run.records()}
    assert list(run.flight.iterdir()) == []


def test_a_job_that_ended_just_before_the_cell_began_is_not_the_one_at_hand(tmp_path, monkeypatch):
    """Even if it ended seconds ago: the ranks of the job at hand began in this cell, and the kernel before it."""
    run = RunFolder.make(tmp_path)
    gone, kernel, cell = 2**22 + 5, os.getpid(), time.time()
    monkeypatch.setattr(observe_ranks, "_start_time", {kernel: cell - 900, kernel + 1: cell + 0.5}.get)
    monkeypatch.setattr(observe_ranks.processes, "liveness", lambda pid: "ended" if pid == gone else "running")
    for pid in (gone, kernel, kernel + 1):
        run.save_record(RankState(rank=1, pid=pid))
    path = run.record_path(gone)
    os.utime(path, (cell - 1, cell - 1))
    forget_earlier(run, [kernel + 1], cell - 900, kernel=kernel)
    kept = path.exists()  # as long as it may belong to a cell before
    forget_earlier(run, [kernel + 1], cell, kernel=kernel)

    assert (True, False) == (kept, path.exists())
    assert {kernel, kernel + 1} == {record.pid for record in run.records()}


HOSTILE = "<script>alert(1)</script>\x1b[31m"


def seen(**more):
    state = RankState(
        rank=1,
        pid=7,
        host=HOSTILE,
        alive=True,
        groups=(Group(name="0", desc=HOSTILE, enqueued=2, completed=1),),
        pending=Operation(op="all_reduce", seq=2, group="0"),
        stack=(Frame("/job.py", 3, HOSTILE, HOSTILE),),
        device_memory=(2**30, 2**31),
        step=4,
        roads={"endpoint": HOSTILE},
    )
    return RanksSeen(kind="hang", ranks=(state,), notes=(HOSTILE,), **more)


def test_nothing_that_ranks_say_is_markup():
    """Names of hosts, groups, functions and errors come from other processes."""
    verdict = Verdict(kind="dead", culprits=(1,), summary=HOSTILE, evidence=(HOSTILE,), confidence=0.5)
    record = seen(verdict=verdict, here=RunningCell(stack=(Frame("cell In[1]", 1, "<module>", HOSTILE),), busy=0.0))

    assert "<script" not in render_ranks.html(record)
    assert "\x1b" not in render_ranks.plain_text(record) + render_ranks.html(record)
    assert "all_reduce #2 of 0" in render_ranks.plain_text(record)
    assert "1.0 GiB (2.0 GiB)" in render_ranks.plain_text(record)


def test_heads_and_short_columns_are_not_broken_within_words():
    """A notebook may break any text that is too wide; the long columns leave room enough."""
    table = render_ranks.html(seen()).partition("<table>")[2]
    cells = re.findall(r'<(t[hd]) style="([^"]*)">([^<]*)<', table)
    wrapped = [(tag, text) for tag, style, text in cells if "white-space:nowrap" not in style]

    assert {"rank", "host", "groups (begun/completed)", "in"} <= {text for tag, _, text in cells if tag == "th"}
    assert ["td", "td"] == [tag for tag, _ in wrapped]
    assert "all_reduce #2 of 0" in wrapped[1][1]


def test_a_stranger_on_a_device_is_named():
    """A process that is none of the ranks holds memory."""
    gpu = Gpu(index=0, name="H200", memory_total=2**37, memory_used=2**36, processes=((7, 2**35), (99, 2**35)))
    text = render_ranks.plain_text(seen(gpus=(gpu,)))

    assert "rank 1 32.0 GiB" in text
    assert "pid 99, none of these ranks 32.0 GiB" in text


def test_the_first_import_that_makes_ranks_is_noticed_once(monkeypatch):
    """The finder finds nothing itself and leaves; an error of what it calls is not the import's."""
    import sys

    monkeypatch.setattr("dtdebug.notebook.arm._MAKES_RANKS", {"no_such_maker"})
    calls = []
    watch = ImportWatch(lambda: calls.append(1) or 1 / 0)
    watch.begin()
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError):
            __import__("no_such_maker")

    assert calls == [1]
    assert watch not in sys.meta_path


@pytest.mark.parametrize("content", [None, [], "x", {"kind": 1}, {"kind": "boo"}])
def test_a_request_of_no_known_kind_gets_an_error(content):
    """Two kinds of questions are answered, nothing else is run."""
    expected = "error" if isinstance(content, dict) else None
    reply = answer(SimpleNamespace(cells=None, thread=0, run=None, output=str), content)

    assert expected in (None, reply["status"])
    assert reply["status"] in ("ok", "error")


def test_the_interval_of_the_interpreter_comes_back_when_the_last_one_leaves():
    """Two looks at once, as by message and by subshell."""
    from dtdebug.process.switch_interval import short_switch_interval

    before = sys.getswitchinterval()
    with short_switch_interval():
        with short_switch_interval():
            inner = sys.getswitchinterval()
        outer = sys.getswitchinterval()

    assert (before, True, outer) == (sys.getswitchinterval(), inner < before, inner)


@pytest.mark.parametrize("running", [True, False])
def test_a_rank_forked_at_the_very_start_of_a_cell_belongs_to_it(tmp_path, monkeypatch, running):
    """Start times are as exact as a tick: while its cell runs, it is not a rank of an earlier cell."""
    run = RunFolder.make(tmp_path)
    begun = psutil.Process().create_time() + leftover_ranks._shift() - 0.005
    entry = cell_journal.LastCell(
        running=running, pid=os.getppid(), kernel="k.json", number=5, begun=begun, source="", begins={5: begun}
    )
    rank = SimpleNamespace(pid=os.getpid(), rank=0)
    monkeypatch.setattr(leftover_ranks.processes, "find_ranks", lambda _: [rank])

    members = [*leftover_ranks._members(run.path, entry)]

    assert ([] if running else [(os.getpid(), 5)]) == [(m.pid, m.cell) for m in members]


def test_a_death_is_not_reported_again_after_a_kernel_that_ended_well(tmp_path, monkeypatch):
    """The folder of a kernel without ranks goes at its end, so that the dead one's would be the newest again."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path))
    folder = cell_journal.folders() / "run-a"
    folder.mkdir(parents=True)
    (folder / cell_journal.NAME).write_text(f"1\n{2**22 + 1}\nk.json\n5\n{time.time():.0f}\nx = 1")
    reported = kernel_death.find_unreported("k.json")
    cell_journal.forget_death("other.json")
    still = kernel_death.find_unreported("k.json")
    cell_journal.forget_death("k.json")

    assert reported.startswith("The kernel died while cell In[5] ran; it left no crash report")
    assert reported == still
    assert "" == kernel_death.find_unreported("k.json")


def test_ranks_that_a_dead_kernel_took_along_have_not_finished_the_program(tmp_path, monkeypatch, capsys):
    """Those of a killed process group write no last record; torch interrupts its spawned ones, which then end well."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path))
    run = RunFolder.make(cell_journal.folders())
    (run.path / cell_journal.NAME).write_text(f"1\n{2**22 + 1}\nk.json\n5\n{time.time():.0f}\nx = 1")
    for rank in range(2):
        run.save_record(RankState(rank=rank, pid=2**22 + 2 + rank, world_size=2, time=time.time()))
    extension = SimpleNamespace(require_live=lambda: SimpleNamespace(name="k.json"))
    without_record = magic_ranks.after_death(extension)
    printed = capsys.readouterr().out
    for rank in range(2):
        run.save_record(RankState(rank=rank, pid=2**22 + 2 + rank, world_size=2, alive=False, exit_code=0))
    interrupted = magic_ranks.after_death(extension)

    assert "; ranks 0-1 ended without a record of how, perhaps with it" in printed
    for found in (without_record, interrupted):
        assert found is not None
        assert ((), None) == (found.ranks, found.verdict)


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        (
            "%time x\ndef stop(code):\n    os._exit(code)\nstop(3)",
            "its line 3 is `os._exit(code)`, which leaves no crash report",
        ),
        (
            "x = 1\nos.kill(os.getpid(), signal.SIGKILL)",
            "its line 2 is `os.kill(os.getpid(), signal.SIGKILL)`, which leaves",
        ),
        ("os.kill(child, signal.SIGTERM)", "it left no crash report: "),
        ("x = (\n", "it left no crash report: "),
    ],
)
def test_a_death_without_a_report_names_the_line_that_ends_its_process(tmp_path, cell, says):
    entry = cell_journal.LastCell(
        running=True, pid=2**22 + 1, kernel="k.json", number=5, begun=time.time(), source=cell, begins={}
    )

    assert kernel_death.death_sentence(tmp_path, entry).startswith(f"The kernel died while cell In[5] ran; {says}")
