"""What a front end's "Diagnose" button is answered: by text alone, or by the extension that saw the cell fail."""

import json
import runpy
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from places import ROOT

from dtdebug.notebook import extension_state as in_process
from dtdebug.notebook import front_end_api
from dtdebug.notebook.extension import Extension
from dtdebug.storage import state_dir
from dtdebug.wizard import resume
from dtdebug.wizard.session import Session
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import ExceptionInfo, Snapshot

JUPYTERLAB = ROOT / "extension" / "jupyterlab"
NCCL = "NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error, NCCL version 2.19.3"
SPAWN = "\n\n-- Process 1 terminated with the following error:\nRuntimeError: mat1 and mat2 shapes cannot be multiplied"


@pytest.fixture
def loaded(monkeypatch):
    """An extension that no shell has installed."""
    loaded = Extension(shell=None)
    monkeypatch.setattr(in_process, "extension", loaded)
    return loaded


def look(**asked):
    """As it comes out of a message."""
    return json.loads(json.dumps(front_end_api.look(json.dumps(asked))._repr_mimebundle_()["application/json"]))


def test_a_failure_is_diagnosed_by_its_text_without_the_extension():
    """Nothing is loaded and nothing kept."""
    seen = look(cell="train()", ename="RuntimeError", evalue=NCCL)

    assert (False, True) == (seen["loaded"], seen["told"])
    assert seen["diagnosis"]["recognised"]
    assert "D.1.1" in {s["code"] for s in seen["diagnosis"]["symptoms"][:2]}
    assert in_process.extension is None


def test_an_exception_is_found_by_the_last_part_of_its_name():
    """A notebook keeps no more; the rank stands in the message."""
    seen = look(cell="train()", ename="ProcessRaisedException", evalue=SPAWN)

    assert [1] == seen["diagnosis"]["culprits"]
    assert front_end_api._exception("DistBackendError", "").type == "torch.distributed.DistBackendError"


def test_what_a_child_raised_is_the_failure_and_an_exit_code_is_none():
    """`mp.spawn` raises for the child; the text of its exception holds the child's own."""
    child = 'Traceback (most recent call last):\n  File "/home/u/t.py", line 5, in main\nValueError: shard 3 is short\n'
    text = f"\n\n-- Process 2 terminated with the following error:\n{child}"
    seen = look(cell="train()", ename="ProcessRaisedException", evalue=text)
    assert seen["diagnosis"]["happened"] == "Rank 2 raised ValueError: shard 3 is short at /home/u/t.py:5 in main"
    ended = look(cell="train()", ename="ProcessExitedException", evalue="process 1 terminated with exit code 3")
    assert "exit code 3" in ended["diagnosis"]["happened"]


def test_answers_count_where_no_extension_keeps_them():
    """The card goes on by itself."""
    first = look(cell="train()", ename="RuntimeError", evalue=NCCL)["diagnosis"]["question"]
    key, value = first["key"], first["values"][0][0]
    seen = look(cell="train()", ename="RuntimeError", evalue=NCCL, answers={key: value})

    assert [value] == next(k["values"] for k in seen["diagnosis"]["known"] if k["key"] == key)
    assert key != (seen["diagnosis"]["question"] or {}).get("key")


def test_nothing_is_told_of_a_failure_that_this_kernel_has_not_seen():
    """A cell of `%dtdebug` in a notebook whose kernel was restarted."""
    assert not look()["told"]


def test_the_extension_knows_more_than_the_text(loaded):
    """The snapshot of the same cell is gone by, with its session."""
    measured = Snapshot(cell="train()", exception=ExceptionInfo(type="RuntimeError", message=NCCL, rank=3))
    loaded.snapshot = measured
    by_cell, by_magic = look(cell="train()", ename="RuntimeError", evalue=NCCL), look()

    assert by_cell["loaded"]
    assert [3] == by_cell["diagnosis"]["culprits"] == by_magic["diagnosis"]["culprits"]
    assert measured is loaded.snapshot


def test_the_magic_goes_on_from_the_cell_that_was_asked_about(loaded, tmp_path, monkeypatch):
    """An older failure than the one that the extension knows; nothing is written."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path))
    loaded.snapshot = Snapshot(cell="other()", exception=ExceptionInfo(type="ValueError", message="x"))
    look(cell="train()", ename="RuntimeError", evalue=NCCL)

    assert "train()" == loaded.snapshot.cell
    assert [] == [*state_dir.folder().rglob("*.json")]


def test_text_is_cleaned():
    """It comes from whoever wrote the notebook."""
    seen = look(cell="train()", output="\x1b[31mNCCL WARN\x1b[0m hf_abcdefghijklmnopqrstuv", evalue="\x1b]0;x\x07")

    assert "\x1b" not in json.dumps(seen)
    assert "hf_abc" not in json.dumps(seen)


@pytest.mark.parametrize("request_", ["", "[]", '{"answers": {"activity": 1}}'])
def test_a_request_of_another_form_is_an_error(request_):
    """The front end says which."""
    with pytest.raises(msgspec.MsgspecError):
        front_end_api.look(request_)


def test_an_answer_that_does_not_exist_is_an_error():
    """The front end says so."""
    with pytest.raises(ValueError, match="no value of activity"):
        look(cell="x", answers={"activity": "sleeping"})


FAILED = {"cell": "train()", "ename": "RuntimeError", "evalue": NCCL}


@pytest.fixture
def panel(loaded, tmp_path, monkeypatch):
    """What the panel is answered about the failure that the extension has seen, and the session that follows."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path))
    loaded.snapshot = Snapshot(cell="train()", exception=ExceptionInfo(type="RuntimeError", message=NCCL))
    loaded.session = None

    def tell(**told):
        return look(**FAILED, **told)["diagnosis"], loaded.session

    return tell


def two_answers():
    """Two questions that the failure raises, each with an answer."""
    session = Session(snapshot=Snapshot(cell="train()", exception=ExceptionInfo(type="RuntimeError", message=NCCL)))
    first = session.diagnosis().question
    second = session.answer(first.key, first.values[0][0]).diagnosis().question
    return (first.key, first.values[0][0]), (second.key, second.values[0][0])


def test_answers_reach_the_session_of_the_magic(panel, loaded):
    """Each once, although all are sent each time; `%dtdebug resume` finds them."""
    (a, one), (b, two) = two_answers()
    diagnosis, _ = panel(answers={a: one}, unknown=[b], situation="It hangs at the end.")
    _, again = panel(answers={a: one}, unknown=[b], situation="It hangs at the end.")
    diagnosis, session = panel(answers={a: one, b: two}, situation="It hangs at the end.")

    assert 3 == len(again.steps)
    assert {a: one, b: two} == dict(session.answers)
    assert () == session.unknown
    assert "It hangs at the end." == session.snapshot.situation == loaded.snapshot.situation
    assert {a, b} <= {known["key"] for known in diagnosis["known"]}
    assert session == resume()


def test_what_the_panel_takes_back_is_gone(panel):
    """An answer, a question put aside, words; what else was told stays."""
    (a, one), (b, two) = two_answers()
    panel(answers={a: one}, situation="First words.")
    panel(answers={a: one, b: two}, situation="First words.")
    _, less = panel(answers={b: two}, situation="Other words.")
    diagnosis, none = panel()

    assert ({b: two}, "Other words.") == (dict(less.answers), less.snapshot.situation)
    assert ((), "") == (none.steps, none.snapshot.situation)
    assert a == diagnosis["question"]["key"]


def test_what_was_answered_in_the_notebook_stays(panel, loaded):
    """The panel does not know of it; where both have answered, the later one counts."""
    (a, one), (b, two) = two_answers()
    other = next(v.value for v in load().observations[a].value if v.value != one)
    panel(answers={a: one})
    loaded.session = loaded.session.answer(b, two).answer(a, other)
    _, kept = panel(answers={a: one})
    _, taken_back = panel()
    _, changed = panel(answers={a: one})

    assert {a: other, b: two} == dict(kept.answers) == dict(taken_back.answers)
    assert {a: one, b: two} == dict(changed.answers)


def test_answers_hold_for_a_cell_that_fails_again(panel, loaded):
    """The session is new, what the panel shows as answered is not asked again."""
    ((a, one), _) = two_answers()
    panel(answers={a: one})
    loaded.session = None
    _, session = panel(answers={a: one})

    assert {a: one} == dict(session.answers)


def test_an_open_wizard_shows_what_the_panel_answers(panel, loaded):
    """The same session on both sides."""
    pytest.importorskip("ipywidgets")
    from dtdebug.wizard.widgets import Wizard

    ((a, one), (b, _)) = two_answers()
    loaded.wizard = Wizard(Session(snapshot=loaded.snapshot))
    panel(answers={a: one})
    asked = loaded.wizard.question.value
    loaded.wizard.dont_know.click()
    diagnosis, _ = panel(answers={a: one})

    assert load().observations[b].ask in asked
    assert {a: one} == dict(loaded.wizard.session.answers)
    assert (b,) == loaded.wizard.session.unknown
    assert b != diagnosis["question"]["key"]


def test_words_alone_are_enough_to_begin(loaded, tmp_path, monkeypatch):
    """No cell has failed: the user tells what is wrong."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path))
    seen = look(situation="NCCL timeout after an hour, all_reduce hangs on 8 GPUs")
    more = look(situation="NCCL timeout after an hour, all_reduce hangs on 8 GPUs", unknown=["activity"])

    assert seen["told"]
    assert ("activity",) == loaded.session.unknown
    assert "activity" != (more["diagnosis"]["question"] or {}).get("key")


def test_a_pasted_log_is_not_the_failure_that_the_extension_knows(loaded, tmp_path, monkeypatch):
    """It has no cell; asked about again it goes on."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path))
    loaded.snapshot = Snapshot(cell="other()", exception=ExceptionInfo(type="ValueError", message="x"))
    look(output=NCCL, situation="from a log")
    look(output=NCCL, situation="from a log", unknown=["activity"])

    assert (NCCL, "") == (loaded.snapshot.output, loaded.snapshot.cell)
    assert "from a log" == loaded.session.snapshot.situation
    assert 2 == len(loaded.session.steps)


def test_an_answer_that_does_not_exist_changes_nothing(panel, loaded):
    """Nor do those beside it."""
    ((a, one), _) = two_answers()
    panel(answers={a: one})
    with pytest.raises(ValueError, match="no observation"):
        panel(answers={"nothing": "x"})

    assert {a: one} == dict(loaded.session.answers)


def test_answers_may_come_from_many_threads(panel, loaded):
    """As from two browsers: nothing is lost, nothing twice."""
    ((a, one), (b, two)) = two_answers()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: panel(answers={a: one, b: two}, situation="x"), range(24)))

    assert 3 == len(loaded.session.steps)


def test_what_the_front_end_knows_is_what_the_knowledge_says():
    """The file that its build makes holds each class and pattern, and comes back as it was packed."""
    generate = runpy.run_path(str(JUPYTERLAB / "generate.py"))
    known = generate["known"](load())

    assert {"ChildFailedError", "DistBackendError"} <= set(known["classes"])
    assert len(known["patterns"]) > 100
    assert known == generate["unpack"](generate["pack"](known))
