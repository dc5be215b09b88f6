"""`%dtdebug run` and `%dtdebug rehearse` show what an instrument answers as a card."""

import json
import types
from pathlib import Path

import msgspec
import pytest

from dtdebug.notebook import instrument_cell
from dtdebug.notebook.magic import _VERBS, USAGE
from dtdebug.presentation.cell_answer import answer_of
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.answer import Answer, Fix, Spot
from dtdebug_taxonomy.model.snapshot import Snapshot


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """A notebook whose last job is known; what was run, and what was shown."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path))
    history = types.SimpleNamespace(input_hist_raw=["!torchrun --nproc-per-node 2 t.py"])
    shown, ran = [], []
    shell = types.SimpleNamespace(history_manager=history, user_ns={})
    return types.SimpleNamespace(shell=shell, publish=shown.append, shown=shown, ran=ran)


def answers(monkeypatch, notebook, said):
    """Let each job answer so."""

    def run(command, answer=None):
        notebook.ran.append(command)
        path = answer or command[command.index("--output") + 1]
        Path(path).write_text(json.dumps(said), encoding="utf-8")

    monkeypatch.setattr(instrument_cell, "_run", run)


def test_a_forecast_is_shown_as_the_short_answer(shell, monkeypatch):
    """With place, fix and note, without markup of others; it needs no output of the job."""
    spots = (Spot(file="/x/<b>.py", line=4, code="loss.backward()", state="at the peak"),)
    answer = Answer(
        headline="It does not fit in 80.0 GiB.", spots=spots, fix=Fix(text="Shard it."), notes=("From sizes.",)
    )
    answers(monkeypatch, shell, {"v": 1, "answer": msgspec.to_builtins(answer), "fits": False})
    instrument_cell.show_instrument(shell, "rehearse", ["--memory", "--world", "64", "--", "train.py"])
    (card,) = shell.shown
    assert card["text/plain"].startswith("dtdebug: It does not fit in 80.0 GiB.")
    assert "%dtdebug why" not in card["text/plain"]  # there is nothing more
    for text in ("It does not fit", "loss.backward()", "Shard it.", "note: From sizes.", "&lt;b&gt;.py"):
        assert text in card["text/html"]
    assert "<b>.py" not in card["text/html"]
    (command,) = shell.ran
    assert command[command.index("rehearse") :] == [
        "rehearse", "--memory", "--world", "64", "--format", "json", "--", "train.py",
    ]  # fmt: skip


def test_a_measured_step_says_what_was_compared(shell, monkeypatch, capsys):
    """Also where nothing was found, or nothing could be compared: then no all-clear is given."""
    said = {"watch": [], "late": [], "verdict": {"summary": "The job has finished."}, "diagnosis": None}
    note = "parity: nothing compared: no optimizer step was seen"
    answers(monkeypatch, shell, {**said, "notes": [note]})
    instrument_cell.show_instrument(shell, "run", ["--parity", "--steps", "1,3"])
    assert shell.ran == []  # named by a cell only: not run without --yes
    assert "`%dtdebug run --parity --steps 1,3 --yes` runs it again" in capsys.readouterr().out
    instrument_cell.show_instrument(shell, "run", ["--parity", "--steps", "1,3", "--yes"])
    assert shell.ran[0][-5:] == ["--", "torchrun", "--nproc-per-node", "2", "t.py"]
    assert "--yes" not in shell.ran[0]
    (card,) = shell.shown
    assert card["text/plain"].splitlines() == ["The job has finished.", note]
    assert note in card["text/html"]
    assert "Nothing that must hold" not in card["text/html"]


def test_what_is_asked_for_in_vain_is_one_line(shell):
    """No instrument, an option of a terminal, no job."""
    with pytest.raises(ValueError, match="name what to measure: --watch, --parity"):
        instrument_cell.show_instrument(shell, "run", ["--", "torchrun", "t.py"])
    with pytest.raises(ValueError, match="--output=x is for a terminal"):
        instrument_cell.show_instrument(shell, "run", ["--nan", "--output=x", "--", "torchrun", "t.py"])
    shell.shell.history_manager.input_hist_raw = ["print(1)"]
    with pytest.raises(ValueError, match="run --nan: name the job"):
        instrument_cell.show_instrument(shell, "run", ["--nan"])


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("the gradient norm depends on the number of GPUs", "%dtdebug run --parity --yes"),
        ("loss becomes NaN after 300 steps with DDP on 8 GPUs", "%dtdebug run --nan --yes"),
        ("after resuming from the checkpoint the loss jumps up, pytorch DDP", "%dtdebug run --resume-check --yes"),
    ],
)
def test_the_next_step_of_a_notebook_is_an_instrument_that_it_can_run(words, command):
    """By a verb of `%dtdebug`."""
    snapshot = Snapshot(situation=words)
    step = answer_of(diagnose(load(), snapshot), snapshot).next
    assert step is not None
    assert step.command == command
    assert command.split()[1] in _VERBS
    assert f"%dtdebug {command.split()[1]}" in USAGE
