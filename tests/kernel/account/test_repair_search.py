"""Repairs that are searched for: programs of which one expression is wrong run with the diff that the account gives."""

import sys
from pathlib import Path

import pytest

from dtdebug.account.capture import capture
from dtdebug.experiments.trial.patch import apply_patch
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Excerpt, Snapshot
from dtdebug_taxonomy.presentation.answer import build_answer

TRACE = BaseException.__dict__["__traceback__"]
INDEX = """def pick(shards, rank, world):
    mine = []
    for step in range(len(shards) // world):
        mine.append(shards[step * world + rank + 1])
    return mine


pick(list("abcdef"), 1, 2)
"""
PROPERTY = """from dataclasses import dataclass

import torch
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts


@dataclass
class Schedule:
    epochs: int = 8
    restarts: int = 10

    @property
    def period(self):
        return self.epochs // self.restarts


def build(schedule):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    return CosineAnnealingWarmRestarts(optimizer, T_0=schedule.period)


build(Schedule())
"""
SAVED = """import io

import torch


def make_optimizer(parameters, split=False):
    groups = [{"params": parameters[:1]}, {"params": parameters[1:]}] if split else parameters
    return torch.optim.SGD(groups, lr=0.1)


def weights():
    return [torch.zeros(2, requires_grad=True), torch.zeros(3, requires_grad=True)]


def save(file):
    optimizer = make_optimizer(weights(), split=True)
    torch.save({"optimizer": optimizer.state_dict()}, file)


def resume(file):
    optimizer = make_optimizer(weights())
    saved = torch.load(file)
    optimizer.load_state_dict(saved["optimizer"])


file = io.BytesIO()
save(file)
file.seek(0)
resume(file)
"""
PREFIX = """import torch


def resume(state):
    model = torch.nn.Linear(2, 2)
    model.load_state_dict(state["model"])


resume({"model": {"_orig_mod.weight": torch.zeros(2, 2), "_orig_mod.bias": torch.zeros(2)}})
"""
BATCHES = """from torch.utils.data import BatchSampler, DataLoader, SequentialSampler


def build(data, size):
    batches = BatchSampler(SequentialSampler(data), size, drop_last=False)
    return DataLoader(data, batch_size=size, batch_sampler=batches)


build(list(range(8)), 4)
"""
UNTAKEN = """class Wrapped:
    def no_sync(self):
        return 0


def wrap(model, world):
    if world > 2:
        model = Wrapped()
    return model


class Net:
    pass


def train(world):
    model = wrap(Net(), world)
    model.no_sync()


train(2)
"""


def answered(path):
    """Return the answer to what a program raises."""
    text = path.read_text()
    try:
        exec(compile(text, str(path), "exec"), {"__name__": "__main__", "__file__": str(path)})
    except Exception as error:
        TRACE.__set__(error, TRACE.__get__(error).tb_next)
        found, message = capture(error, seconds=5), f"{type(error).__name__}: {error}"
    else:
        return None
    output = f'Traceback (most recent call last):\n  File "{path}", line {found.place.line}, in <module>\n{message}\n'
    excerpt = Excerpt(file=str(path), first=1, lines=tuple(text.splitlines()))
    snapshot = Snapshot(output=output, accounts=(found,), excerpts=(excerpt,))
    return build_answer(diagnose(load(), snapshot), snapshot)


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Return the path of a program that runs in its own folder."""
    monkeypatch.setattr(sys, "argv", ["train.py"])
    monkeypatch.chdir(tmp_path)
    return tmp_path / "train.py"


@pytest.mark.parametrize(
    ("text", "line"),
    [(INDEX, 4), (PROPERTY, 14), (SAVED, 21), (PREFIX, 6), (BATCHES, 6)],
    ids=lambda each: str(each)[:20],
)
def test_the_program_runs_with_the_searched_diff(program, text, line):
    """A constant too much, a quotient of 0, a call unlike the saved one, a prefix of names, an argument too much."""
    program.write_text(text)
    answer = answered(program)
    assert ("train.py", line) == (Path(answer.fix.file).name, answer.fix.line)
    program.write_text(apply_patch(text, answer.fix.diff))
    assert answered(program) is None


def test_the_test_that_kept_a_value_from_being_made_is_named_without_a_diff(program):
    """More than one change of the test would let it hold."""
    program.write_text(UNTAKEN)
    answer = answered(program)
    assert 7 == answer.fix.line
    assert "`world > 2` is False" in answer.headline
    assert not answer.fix.diff


ALIKE = """import torch


def mix(rows, weight):
    return torch.matmul(rows, weight)


mix(torch.ones(4, 3), torch.ones(8, 4))
"""


def test_two_tensors_alike_are_not_put_in_each_others_place(program):
    """Their shapes would fit then, which is chance: one of them may be to be transposed."""
    program.write_text(ALIKE)
    assert not answered(program).fix.diff
