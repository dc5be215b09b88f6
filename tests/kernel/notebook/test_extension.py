"""The hook in a real IPython shell of this process: what it notices, what it leaves alone."""

import gc
import html
import subprocess
import sys
import weakref
from types import SimpleNamespace

import pytest

pytest.importorskip("IPython")
pytestmark = pytest.mark.ipython

from IPython.core.interactiveshell import InteractiveShell  # noqa: E402
from IPython.utils.capture import capture_output  # noqa: E402

from dtdebug.notebook import extension_state  # noqa: E402
from dtdebug.presentation.diagnosis_card import MIME  # noqa: E402

NCCL = "raise RuntimeError('NCCL error in: ProcessGroupNCCL.cpp:1691, unhandled system error, NCCL version 2.19.3')"


@pytest.fixture
def shell(monkeypatch, tmp_path):
    """A shell with the extension loaded; everything is undone after the test."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "dtdebug")
    yield shell
    shell.run_line_magic("unload_ext", "dtdebug")
    InteractiveShell.clear_instance()
    for name in ("last_value", "last_type", "last_traceback"):
        sys.__dict__.pop(name, None)


def run(shell, cell):
    """Runs a cell; (result, printed text, published MIME bundles)."""
    with capture_output() as captured:
        result = shell.run_cell(cell, store_history=True)
    return result, captured.stdout + captured.stderr, [o.data for o in captured.outputs]


def answers(bundles):
    return [b[MIME] for b in bundles if MIME in b]


def test_a_failure_of_distributed_training_is_answered_under_its_traceback(shell):
    """One bundle: small versioned JSON, HTML without script, plain text; the traceback is as before."""
    result, printed, bundles = run(shell, NCCL)
    (bundle,) = [b for b in bundles if MIME in b]

    assert isinstance(result.error_in_exec, RuntimeError)
    assert "unhandled system error" in printed
    assert bundle[MIME]["v"] == 1
    assert "<script" not in bundle["text/html"]
    assert bundle["text/plain"].startswith("dtdebug: ")
    assert "unhandled system error" in " ".join(bundle["text/plain"].split())
    assert bundle[MIME]["answer"]["headline"] in html.unescape(bundle["text/html"])
    assert len(bundle["text/plain"].splitlines()) <= 12


@pytest.mark.parametrize("above", ["", "\n", "  \n\n\n"])
def test_empty_lines_before_the_code_do_not_move_the_shown_line(shell, above):
    """IPython drops them before it compiles: a frame's line is counted from the first one with code."""
    cell = f"{above}import torch.distributed as dist\ndist.init_process_group('gloo', rank=0, world_size=1, timeout=3)"
    pytest.importorskip("torch")
    _, _, bundles = run(shell, cell)
    (answer,) = answers(bundles)

    assert "timeout=3)" in answer["answer"]["spots"][0]["code"]
    assert "-dist.init_process_group('gloo', rank=0, world_size=1, timeout=3)" in answer["answer"]["fix"]["diff"]


def test_a_plain_error_stays_undecorated(shell):
    """A ZeroDivisionError has nothing to do with distributed training."""
    result, printed, bundles = run(shell, "1/0")

    assert isinstance(result.error_in_exec, ZeroDivisionError)
    assert answers(bundles) == []
    assert "dtdebug" not in printed


@pytest.mark.parametrize(
    "cell",
    [
        f"import builtins\n{NCCL}",
        f"try:\n    1/0\nexcept ZeroDivisionError as e:\n    {NCCL} from e",
        f"async def f():\n    {NCCL}\nawait f()",
        f"raise ExceptionGroup('ranks', [ValueError('x'), RuntimeError({NCCL[19:-1]})])",
        f"class R:\n    def __repr__(self):\n        {NCCL}\nR()",
    ],
    ids=["plain", "chained", "async", "group", "repr"],
)
def test_failures_of_every_kind_are_noticed(shell, cell):
    """Chained, async, grouped, and those of a repr that reply without an error."""
    _, _, bundles = run(shell, cell)

    assert len(answers(bundles)) == 1


def test_a_script_that_fails_under_run_is_noticed(shell, tmp_path):
    """%run replies ok; sys.last_value tells."""
    (tmp_path / "train.py").write_text(NCCL)
    result, _, bundles = run(shell, f"%run {tmp_path / 'train.py'}")

    assert result.success
    assert len(answers(bundles)) == 1


def test_a_cell_that_is_not_python_and_an_interrupt_do_not_break_the_hook(shell):
    """A SyntaxError is left alone; a KeyboardInterrupt in plain code too."""
    for cell in ("def :", "raise KeyboardInterrupt", "%no_such_magic"):
        _, printed, bundles = run(shell, cell)

        assert answers(bundles) == []
        assert "dtdebug" not in printed


def test_one_failure_is_answered_once(shell):
    """The next cell, which passes, says nothing about the one before."""
    run(shell, NCCL)
    _, printed, bundles = run(shell, "x = 1")

    assert answers(bundles) == []
    assert printed == ""


def test_no_object_of_the_failed_cell_is_kept_alive(shell):
    """Once nobody else holds the exception, what its frames held is freed: no tensor stays on a device."""

    class Tensor:
        pass

    def step():
        tensor = Tensor()
        alive.append(weakref.ref(tensor))
        raise RuntimeError("NCCL error in: ProcessGroupNCCL.cpp:1691, unhandled system error")

    alive = []
    with capture_output() as captured:
        try:
            step()
        except RuntimeError as error:
            extension_state.extension.after(SimpleNamespace(error_in_exec=error, error_before_exec=None, info=None))
    gc.collect()

    assert len(answers([o.data for o in captured.outputs])) == 1
    assert alive[0]() is None


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ZeroDivisionError, "internal error (ZeroDivisionError)"),
        (KeyboardInterrupt, "interrupted; `%dtdebug` "),
    ],
)
def test_a_defect_of_ours_is_one_line_and_leaves_the_traceback(shell, monkeypatch, error, line):
    """Whatever fails inside the hook, the user's cell looks as it would; stop can be pressed while it is diagnosed."""
    import dtdebug.notebook.failed_cell

    def broken(*_args, **_kwargs):
        raise error("ours")

    monkeypatch.setattr(dtdebug.notebook.failed_cell, "diagnose_failed_cell", broken)
    result, printed, bundles = run(shell, NCCL)

    assert isinstance(result.error_in_exec, RuntimeError)
    assert "unhandled system error" in printed
    assert printed.count(f"dtdebug: {line}") == 1
    assert "ours" not in printed
    assert answers(bundles) == []


def test_an_exception_that_can_not_be_printed_is_left_alone(shell):
    """Its class may do anything: the hook says nothing and does not fail."""
    cell = "class Odd(Exception):\n    def __str__(self):\n        raise ValueError('no text')\nraise Odd"
    result, printed, bundles = run(shell, cell)

    assert not result.success
    assert answers(bundles) == []
    assert "dtdebug" not in printed


def test_off_and_on(shell):
    """%dtdebug off keeps quiet, and the failure can still be asked about."""
    run(shell, "%dtdebug off")
    _, _, bundles = run(shell, NCCL)
    _, why, _ = run(shell, "%dtdebug why")
    run(shell, "%dtdebug on")
    _, _, again = run(shell, NCCL)

    assert answers(bundles) == []
    assert "unhandled system error" in why
    assert len(answers(again)) == 1


def test_answers_change_the_diagnosis(shell):
    """%dtdebug answer KEY VALUE; a wrong key or value is one clear line."""
    run(shell, NCCL)
    _, _, bundles = run(shell, "%dtdebug answer activity initializing")
    _, wrong_key, _ = run(shell, "%dtdebug answer activiti initializing")
    _, wrong_value, _ = run(shell, "%dtdebug answer activity sleeping")

    assert answers(bundles)[0]["symptoms"][0]["code"] == "B.1"
    assert "activity" in wrong_key
    assert "installing" in wrong_value


def test_explain_report_and_unknown_verbs(shell, tmp_path):
    """The other verbs print what they promise."""
    run(shell, NCCL)
    _, _, explained = run(shell, "%dtdebug explain D.2.1")
    run(shell, f"%dtdebug report {tmp_path / 'report.md'}")
    _, unknown, _ = run(shell, "%dtdebug frobnicate")
    _, missing, _ = run(shell, "%dtdebug explain D.9.9")

    assert "D.2.1" in explained[0]["text/plain"]
    assert "unhandled system error" in (tmp_path / "report.md").read_text()
    assert "no verb 'frobnicate'" in unknown
    assert "did you mean `%dtdebug explain`?" in run(shell, "%dtdebug explian D.2.1")[1]
    assert "D.9.9" in missing


def test_loading_says_in_one_line_that_it_watches_and_how_to_turn_it_off(shell, capsys):
    """Whether it is on is the first question of whoever loads it."""
    shell.run_line_magic("unload_ext", "dtdebug")
    capsys.readouterr()
    shell.run_line_magic("load_ext", "dtdebug")

    (line,) = capsys.readouterr().out.splitlines()
    assert "watches" in line
    assert "%dtdebug off" in line


@pytest.mark.parametrize(("cell", "place"), [(NCCL, "line 1"), ("cfg = {}\ncfg['lr']", "line 2")])
def test_what_failed_before_it_was_loaded_is_answered_for(shell, cell, place):
    """Also an error that has nothing to do with distribution: its event, place and line of code."""
    shell.run_line_magic("unload_ext", "dtdebug")
    run(shell, cell)
    _, _, bundles = run(shell, "%load_ext dtdebug")
    (text,) = [b["text/plain"] for b in bundles if MIME in b]

    assert place in text
    assert f"      {cell.splitlines()[-1]}"[:60] in text


def test_why_has_something_to_say_of_the_last_error_whatever_it_was(shell):
    """An ordinary error shows nothing unasked; asked for, it is the newest one and not the failure before it."""
    run(shell, NCCL)
    run(shell, "{}['lr']")
    _, why, _ = run(shell, "%dtdebug why")

    assert "KeyError: 'lr'" in why
    assert "NCCL" not in why


def test_what_was_said_shows_what_it_changed(shell):
    """What was understood; and if the answer stays, that it stays."""
    run(shell, NCCL)
    _, first, _ = run(shell, "%dtdebug say on two nodes")
    _, again, bundles = run(shell, "%dtdebug say on two nodes")

    assert "nodes = multiple" in first
    assert "does not change the answer" in again
    assert len(answers(bundles)) == 1


def test_a_verb_that_was_mistyped_is_named(shell):
    """One line, not the list of all."""
    _, printed, _ = run(shell, "%dtdebug whi")

    assert printed == "dtdebug: no verb 'whi'; did you mean `%dtdebug why`?\n"


def test_explain_shows_the_beginning_of_a_page_and_all_of_it_on_request(shell):
    """A page of 400 lines is no answer to a question asked beside a failed cell."""
    _, _, (short,) = run(shell, "%dtdebug explain D.2.1")
    _, _, (long,) = run(shell, "%dtdebug explain D.2.1 --all")

    assert len(short["text/plain"].splitlines()) < 30
    assert "%dtdebug explain D.2.1 --all" in short["text/plain"]
    assert len(long["text/plain"].splitlines()) > 100
    assert long["text/plain"].startswith(short["text/plain"].rpartition("\n\n")[0])


def test_a_diagnosis_in_a_cell_is_the_short_answer(shell):
    """Not all fields of a structure."""
    _, _, (bundle,) = run(shell, f"import dtdebug; display(dtdebug.diagnose(output={NCCL[20:-2]!r}))")
    _, printed, _ = run(shell, f"print(dtdebug.diagnose(output={NCCL[20:-2]!r}))")

    assert bundle["text/plain"].startswith("dtdebug: NCCL made a call of the operating system")
    assert bundle[MIME]["answer"]["headline"]
    assert printed.rstrip("\n") == bundle["text/plain"]


def test_reload_and_unload_leave_one_hook_and_then_none(shell):
    """%reload_ext does not double the answer; %unload_ext removes hooks and magic."""
    shell.run_line_magic("reload_ext", "dtdebug")
    _, _, once = run(shell, NCCL)
    shell.run_line_magic("unload_ext", "dtdebug")
    _, printed, none = run(shell, NCCL)

    assert len(answers(once)) == 1
    assert answers(none) == []
    assert extension_state.extension is None
    assert "dtdebug" not in shell.magics_manager.magics["line"]
    assert "dtdebug" not in printed
    shell.run_line_magic("load_ext", "dtdebug")


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_it_lives_beside_rich_tracebacks_and_custom_handlers(shell, first):
    """Either load order: the other tool's traceback and our answer both appear."""
    seen = []

    def theirs(self, kind, value, traceback, tb_offset=None):
        seen.append(value)
        self.showtraceback((kind, value, traceback), tb_offset=tb_offset)

    if first == "theirs":
        shell.run_line_magic("unload_ext", "dtdebug")
    shell.set_custom_exc((RuntimeError,), theirs)
    if first == "theirs":
        shell.run_line_magic("load_ext", "dtdebug")
    _, printed, bundles = run(shell, NCCL)
    shell.set_custom_exc((), None)

    assert len(seen) == 1
    assert "unhandled system error" in printed
    assert len(answers(bundles)) == 1


@pytest.mark.parametrize("mode", ["Plain", "Minimal", "Verbose", "Context"])
def test_it_lives_with_every_traceback_mode(shell, mode):
    """%xmode changes the traceback, not the answer."""
    run(shell, f"%xmode {mode}")
    _, printed, bundles = run(shell, NCCL)
    run(shell, "%xmode Context")

    assert "unhandled system error" in printed
    assert len(answers(bundles)) == 1


def test_to_load_it_imports_nothing_heavy():
    """Each start of a kernel pays for it."""
    script = (
        "import sys, dtdebug.notebook.extension; "
        "print([m for m in ('torch', 'msgspec', 'rich', 'IPython', 'psutil') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert "[]\n" == done.stdout


@pytest.mark.parametrize("broken", [True, False])
def test_a_broken_curve_of_a_failed_cell_is_a_note_below_its_answer(broken):
    """The exception stays the answer; a healthy curve is not mentioned."""
    from dtdebug.notebook.failed_cell import diagnose_failed_cell

    output = "".join(f"step {n} loss={'nan' if broken and n > 30 else 3 * 0.97**n}\n" for n in range(60))
    error = RuntimeError("NCCL error in: ProcessGroupNCCL.cpp:1, unhandled system error")
    snapshot, diagnosis, _ = diagnose_failed_cell(error, output=output, cell="train()")

    assert diagnosis.recognised
    assert [note for note in snapshot.notes if "NaN from step 31" in note] == [
        note for note in snapshot.notes if note.startswith("Curves: ")
    ]
    assert any(note.startswith("Curves: ") for note in snapshot.notes) == broken
