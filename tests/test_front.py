"""What a front end's "Diagnose" button is answered: by text alone, or by the extension that saw the cell fail."""

import json
import runpy
from pathlib import Path

import msgspec
import pytest

from dtdebug import extension, front, state
from dtdebug.extension import Extension
from dtdebug_taxonomy.knowledge import load
from dtdebug_taxonomy.snapshot import ExceptionInfo, Snapshot

JUPYTERLAB = Path(__file__).parents[1] / "extension" / "jupyterlab"
NCCL = "NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error, NCCL version 2.19.3"
SPAWN = "\n\n-- Process 1 terminated with the following error:\nRuntimeError: mat1 and mat2 shapes cannot be multiplied"


@pytest.fixture
def loaded(monkeypatch):
    """An extension that no shell has installed."""
    loaded = Extension(shell=None)
    monkeypatch.setattr(extension, "_installed", loaded)
    return loaded


def look(**asked):
    """As it comes out of a message."""
    return json.loads(json.dumps(front.look(json.dumps(asked))._repr_mimebundle_()["application/json"]))


def test_a_failure_is_diagnosed_by_its_text_without_the_extension():
    """Nothing is loaded and nothing kept."""
    seen = look(cell="train()", ename="RuntimeError", evalue=NCCL)

    assert (False, True) == (seen["loaded"], seen["told"])
    assert seen["diagnosis"]["recognised"]
    assert "D.1.1" in {s["code"] for s in seen["diagnosis"]["symptoms"][:2]}
    assert extension.installed() is None


def test_an_exception_is_found_by_the_last_part_of_its_name():
    """A notebook keeps no more; the rank stands in the message."""
    seen = look(cell="train()", ename="ProcessRaisedException", evalue=SPAWN)

    assert [1] == seen["diagnosis"]["culprits"]
    assert front._exception("DistBackendError", "").type == "torch.distributed.DistBackendError"


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
    assert [] == [*state.folder().rglob("*.json")]


def test_text_is_cleaned():
    """It comes from whoever wrote the notebook."""
    seen = look(cell="train()", output="\x1b[31mNCCL WARN\x1b[0m hf_abcdefghijklmnopqrstuv", evalue="\x1b]0;x\x07")

    assert "\x1b" not in json.dumps(seen)
    assert "hf_abc" not in json.dumps(seen)


@pytest.mark.parametrize("request_", ["", "[]", '{"answers": {"activity": 1}}'])
def test_a_request_of_another_form_is_an_error(request_):
    """The front end says which."""
    with pytest.raises(msgspec.MsgspecError):
        front.look(request_)


def test_an_answer_that_does_not_exist_is_an_error():
    """The front end says so."""
    with pytest.raises(ValueError, match="no value of activity"):
        look(cell="x", answers={"activity": "sleeping"})


def test_what_the_front_end_knows_is_what_the_knowledge_says():
    """If not, run extension/jupyterlab/generate.py."""
    generate = runpy.run_path(str(JUPYTERLAB / "generate.py"))

    assert generate["FILE"].read_text(encoding="utf-8") == generate["text"](load())
