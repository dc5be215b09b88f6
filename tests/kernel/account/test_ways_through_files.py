"""The way back through several files of a program, and the line that it ends at: each kind with its own program."""

import importlib
import sys

import pytest

from dtdebug.account.capture import capture
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Excerpt, Snapshot
from dtdebug_taxonomy.presentation.answer import build_answer
from dtdebug_taxonomy.presentation.answer_text import to_short_text

TRACE = BaseException.__dict__["__traceback__"]

TABLE = {
    "tables.py": """\
import torch
import torch.nn.functional as F
from torch import nn


class Slice(nn.Module):
    def __init__(self, names, parts):
        super().__init__()
        self.kept = names // parts
        self.table = nn.Parameter(torch.zeros(self.kept, 2))

    def forward(self, ids):
        return F.embedding(ids, self.table)


class Net(nn.Module):
    def __init__(self, names, parts):
        super().__init__()
        self.own = Slice(names, parts)

    def forward(self, ids):
        return self.own(ids)
""",
    "train.py": """\
import torch
from tables import Net

net = Net(names=11, parts=2)
net(torch.tensor([0, 5]))
""",
}
SAVED = {
    "keep.py": """\
import torch
from torch import nn


class Keeper:
    def __init__(self, net):
        self.net = nn.Sequential(net)

    def write(self, path):
        torch.save({
            "round": 3,
            "weights": self.net.state_dict(),
        }, path)
""",
    "train.py": """\
import torch
from keep import Keeper
from torch import nn

net = nn.Linear(2, 2)
Keeper(net).write("last.pt")
found = torch.load("last.pt")
net.load_state_dict(found["weights"])
""",
}
SHORT = {
    "data.py": """\
import torch
from torch.utils.data import DataLoader, TensorDataset


def loaders(rows, size):
    data = TensorDataset(torch.ones(rows, 3))
    return DataLoader(data, batch_size=size), rows
""",
    "train.py": """\
import torch
from data import loaders

first, rows = loaders(10, 4)
offset = torch.zeros(4, 3)
for (x,) in first:
    x + offset
""",
}
COUNTED = {
    "train.py": """\
import torch
from torch.utils.data import DataLoader, TensorDataset


def plan(opt, rounds):
    return torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1, total_steps=rounds)


size = 4
loader = DataLoader(TensorDataset(torch.ones(8, 1)), batch_size=size)
opt = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
schedule = plan(opt, len(loader))
for epoch in range(3):
    for batch in loader:
        opt.step()
        schedule.step()
""",
}
DTYPE = {
    "rows.py": """\
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self):
        self.held = np.ones((6, 3)) / 2

    def __len__(self):
        return len(self.held)

    def __getitem__(self, at):
        return torch.from_numpy(self.held[at])


def make():
    return DataLoader(Rows(), batch_size=2)
""",
    "train.py": """\
from rows import make
from torch import nn

net = nn.Linear(3, 1)
loader = make()
for x in loader:
    net(x)
""",
}
MESH = {
    "sides.py": """\
from dataclasses import dataclass


@dataclass
class Sides:
    rows: int
    columns: int

    @classmethod
    def of(cls, size, rows):
        columns = size // 2
        return cls(rows=rows, columns=columns)

    def shape(self, tensor):
        return tensor.view(self.rows, self.columns)
""",
    "train.py": """\
import torch
from sides import Sides

Sides.of(12, 3).shape(torch.ones(12))
""",
}


@pytest.fixture
def fail(tmp_path, monkeypatch):
    """Run a program of several files, and return its answer as lines and the text of its last link's file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["train.py"])

    def run(files):
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        importlib.invalidate_caches()
        for name in files:
            monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
        path = tmp_path / "train.py"
        with pytest.raises(Exception) as caught:  # noqa: PT011
            exec(compile(files["train.py"], str(path), "exec"), {"__name__": "__main__", "__file__": str(path)})
        error = caught.value
        trace = TRACE.__get__(error)
        while trace.tb_frame.f_code.co_filename != str(path):
            trace = trace.tb_next
        TRACE.__set__(error, trace)
        account = capture(error, seconds=5)
        for name in files:
            sys.modules.pop(name.removesuffix(".py"), None)
        excerpts = tuple(Excerpt(file=str(tmp_path / n), first=1, lines=tuple(t.split("\n"))) for n, t in files.items())
        snapshot = Snapshot(accounts=(account,), excerpts=excerpts)
        found = diagnose(load(), snapshot)
        return to_short_text(build_answer(found, snapshot)), account

    return run


def shown(answer, name, line):
    """True if the answer has a place of its own with this line of code."""
    rows = [row.strip() for row in answer.split("\n")]
    return any(row.startswith((line, f"- {line}")) for row in rows) and f"{name}:" in answer


@pytest.mark.parametrize(
    ("files", "name", "line"),
    [
        (TABLE, "tables.py", "self.kept = names // parts"),
        (SAVED, "keep.py", '"weights": self.net.state_dict(),'),
        (SHORT, "data.py", "return DataLoader(data, batch_size=size), rows"),
        (COUNTED, "train.py", "schedule = plan(opt, len(loader))"),
        (DTYPE, "rows.py", "self.held = np.ones((6, 3)) / 2"),
        (MESH, "sides.py", "columns = size // 2"),
    ],
    ids=["rest-of-a-division", "saved-entry", "last-batch", "counted", "dtype-of-the-data", "class-method"],
)
def test_the_line_that_made_the_value_is_shown_wherever_it_stands(fail, files, name, line):
    answer, account = fail(files)
    assert shown(answer, name, line), f"{answer}\n{account.links}"


def test_the_number_that_was_passed_in_another_file_is_reached(fail):
    _, account = fail(TABLE)
    assert [link.place.line for link in account.links if link.value.text == "11"] == [19, 4]
    assert any(link.place.code == "net = Net(names=11, parts=2)" for link in account.links)


def test_a_division_is_rounded_up_where_that_is_enough(fail):
    answer, _ = fail(TABLE)
    assert "+ self.kept = -(-names // parts)" in answer


def test_the_last_batch_is_told_with_its_size_and_dropped(fail):
    answer, _ = fail(SHORT)
    assert answer.startswith("The last batch has 2 of 4 samples")
    assert "batch_size=size, drop_last=True), rows" in answer


def test_a_batch_of_full_size_is_none_that_is_short(fail):
    wrong = SHORT["train.py"].replace("(10, 4)", "(8, 4)").replace("(4, 3)", "(5, 3)")
    answer, _ = fail({**SHORT, "train.py": wrong})
    assert "last batch" not in answer


def test_a_class_that_two_files_make_is_followed_into_none(fail):
    twice = TABLE["train.py"].replace("net = ", "other = Net(names=20, parts=2)\nnet = ")
    _, account = fail({**TABLE, "train.py": twice})
    assert not any("Net(names" in link.place.code for link in account.links)
