"""The line that an answer names is the one to edit: where a length, a shape or a rank's own value was decided."""

import pytest

from dtdebug.account.capture import capture
from dtdebug.account.chain import describe
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.explanations.deciding_lines import deciding_line
from dtdebug_taxonomy.inference.ranks_apart import with_partings
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.account import Account, Link, NamedValue, Place
from dtdebug_taxonomy.model.snapshot import Excerpt, Snapshot
from dtdebug_taxonomy.presentation.answer import build_answer

TRACE = BaseException.__dict__["__traceback__"]
OTHER_LAUNCHER = """import os
from dataclasses import dataclass


@dataclass
class Job:
    rank: int
    world: int


class Parts:
    def __init__(self, job):
        self.job = job
        self.rows = [n + 1 for n in range(job.world)]

    def own(self):
        return self.rows[self.job.rank]


def read_job():
    env = os.environ
    return Job(rank=int(env.get("RANK", 0)), world=int(env.get("SLURM_NTASKS", 1)))


Parts(read_job()).own()
"""
SIDES = """import torch


class Views:
    def __init__(self, rows, half=4):
        self.first = rows[:half]
        self.second = rows[half - 1 :]


views = Views(torch.ones(8, 3))
a = views.first
b = views.second
a + b
"""
ROUNDS = """class Plan:
    def __init__(self, rows, size):
        self.steps = len(rows) // size


def run(rows, plan):
    parts = iter(rows)
    for _ in range(plan.steps):
        next(parts)


run([1, 2], Plan(range(8), 2))
"""
PRESETS = """import torch

SIZES = {
    "small": {"heads": 5, "width": 48},
}


def sizes_of(name, **changes):
    sizes = dict(SIZES[name])
    sizes.update(changes)
    return sizes


def build(sizes):
    return torch.nn.GroupNorm(sizes["heads"], sizes["width"])


build(sizes_of("small", depth=2))
"""
FOLDER = """import os


def newest(folder):
    names = sorted(os.listdir(folder))
    return names[-1]


int(newest("."))
"""

SCHEDULE = """import torch
from torch.optim.lr_scheduler import OneCycleLR


def make_schedule(optimizer, batches, ranks=2):
    whole = batches // ranks * 3
    return OneCycleLR(optimizer, max_lr=0.1, total_steps=whole)


optimizer = torch.optim.SGD([torch.zeros(2, requires_grad=True)], lr=0.1)
schedule = make_schedule(optimizer, batches=6)
for _ in range(3 * 6):
    optimizer.step()
    schedule.step()
"""

IN_HANDLER = """def read_rates(rows):
    rates = None
    try:
        rates = dict(rows)
        rates["last"] = rates["lsat"]
    except KeyError:
        rates = None
    return rates


def use(rates):
    return rates["first"]


use(read_rates({"first": 1}))
"""
AFTER_A_LITERAL = """class Table:
    def __init__(self, path):
        self.rows = None
        try:
            self.rows = open(path).read()
        except OSError:
            pass


table = Table("no/such/file")
print(table.rows[0])
"""
NEVER_FILLED = """def mean(rows):
    values = []
    for row in rows:
        try:
            values.append(row["index"])
        except Exception:
            pass
    return sum(values) / len(values)


mean([{"id": 1}])
"""
NOT_CAUGHT = """def main():
    try:
        found = dict(a=1)
    except ValueError:
        found = None
    return found["b"]


main()
"""
EQUAL_BY_CHANCE = """from dataclasses import dataclass


@dataclass
class Plan:
    epochs: int = 4
    batch: int = 8
    samples: int = 64


class Schedule:
    def __init__(self, total):
        self.total, self.at = total, 0

    def step(self):
        self.at += 1
        if self.at > self.total:
            raise ValueError(f"step {self.at} of {self.total}")


def make(rows, plan):
    total = len(rows) * plan.epochs // 2
    return Schedule(total)


plan = Plan()
rows = list(range(plan.samples // plan.batch // 2))
schedule = make(rows, plan)
for _ in range(len(rows) * plan.epochs):
    schedule.step()
"""
GIVEN = """import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--dp", type=int, default=2)
parser.add_argument("--tp", type=int, default=1)
args = parser.parse_args()
rows = [1, 2, 3]
print(rows[args.dp * args.tp])
"""
OF_A_FILE = """from pathlib import Path

import yaml

settings = yaml.safe_load(Path(__file__).with_name("settings.yaml").read_text())
model = settings["model"]
model.setdefault("depth", 4)
[1, 2][model["depth"]]
"""

BY_ANOTHER_NAME = """from pathlib import Path

import yaml


def build(settings):
    part = settings["model"]
    return [0] * part["width"]


def main():
    settings = yaml.safe_load(Path(__file__).with_name("settings.yaml").read_text())
    rows = build(settings)
    print(rows[settings["at"]])


main()
"""

OF_BOTH_SIDES = """import torch


class Tagger(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rnn = torch.nn.GRU(4, hidden, batch_first=True, bidirectional=True)
        self.out = torch.nn.Linear(hidden, 3)

    def forward(self, rows):
        states, _ = self.rnn(rows)
        return self.out(states)


Tagger(hidden=32)(torch.ones(2, 5, 4))
"""

PARTS_OF_AN_OPTION = """import argparse
import tempfile

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--parts", type=int, default=1)


def share(full, parts):
    mine = torch.empty(full.shape[0] // parts, 2)
    chunks = list(full.chunk(parts)) if dist.get_rank() == 0 else None
    dist.scatter(mine, chunks, src=0)


args = parser.parse_args()
store = tempfile.mkdtemp() + "/store"
dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
try:
    share(torch.ones(8, 2), args.parts)
finally:
    dist.destroy_process_group()
"""

REMAINDER = """import torch

PATCH = 5


def cut(images, size=32, channels=3):
    n = size // PATCH
    return images.reshape(2, channels, n, PATCH)


cut(torch.ones(2, 3, 32))
"""


@pytest.fixture
def failed(tmp_path, monkeypatch):
    """Return a function that runs a program in its own folder, and gives its path and account."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.delenv("SLURM_NTASKS", raising=False)

    def run(text):
        path = tmp_path / "train.py"
        path.write_text(text)
        with pytest.raises(Exception) as raised:  # noqa: PT011 - each program raises its own
            exec(compile(text, str(path), "exec"), {"__name__": "__main__", "__file__": str(path)})
        error = raised.value
        TRACE.__set__(error, TRACE.__get__(error).tb_next)
        return path, capture(error, seconds=5)

    return run


def answer(failed, text, environment=()):
    """Return the answer to what a program raises, under a launcher that set some variables."""
    path, account = failed(text)
    excerpt = Excerpt(file=str(path), first=1, lines=tuple(text.splitlines()))
    output = f'Traceback (most recent call last):\n  File "{path}", line 1, in <module>\n{account.exception}\n'
    snapshot = Snapshot(output=output, accounts=(account,), excerpts=(excerpt,), environment=dict(environment))
    return build_answer(diagnose(load(), snapshot), snapshot)


def test_list_too_short_for_a_rank_leads_to_the_variable_of_another_launcher(failed):
    """The index is the rank, so the length is wrong: it goes over a field without a default to the environment."""
    told = answer(failed, OTHER_LAUNCHER, {"RANK": "1", "WORLD_SIZE": "2"})
    assert 'world=int(env.get("WORLD_SIZE", 1))' in told.fix.diff
    assert "train.py:22" in told.fix.text


def test_two_values_of_one_lead_to_the_lines_at_which_they_part(failed):
    """What both sides share can't be wrong, a default of 4 least of all."""
    _, account = failed(SIDES)
    assert deciding_line(account).place.code in ("self.second = rows[half - 1 :]", "self.first = rows[:half]")


def test_iterator_that_ends_leads_to_the_number_of_rounds(failed):
    """The loop counts to a number, the iterator holds fewer: both are told, and where the number was made."""
    told = answer(failed, ROUNDS)
    assert "the loop runs 4 rounds" in told.headline
    assert "`len(rows)` is 2" in told.headline
    assert "for _ in range(len(rows)):" in told.fix.diff
    assert "train.py:3" in told.fix.text


def test_attribute_of_an_object_leads_to_the_line_that_decided_it(failed):
    """The schedule is made in a function of its own, which has returned; its number of steps is what is compared."""
    _, account = failed(SCHEDULE)
    assert deciding_line(account).place.code == "whole = batches // ranks * 3"


@pytest.mark.parametrize(
    ("text", "line", "lines"),
    [(IN_HANDLER, 6, "lines 4-5"), (AFTER_A_LITERAL, 5, "line 5"), (NEVER_FILLED, 5, "line 5")],
)
def test_value_of_no_use_leads_to_the_lines_whose_exception_was_passed_over(failed, text, line, lines):
    """Set in the handler, left as it was before the `try`, or never added to; that it was so is likely only."""
    told = answer(failed, text)
    assert f"an exception in {lines} would be passed over" in told.headline
    assert (told.fix.line, told.fix.diff, told.sure) == (line, "", "likely")
    assert f"see what fails in {lines}" in told.fix.text


def test_handler_that_was_not_entered_explains_nothing(failed):
    """The name has the value that the body of the `try` gave it."""
    _, account = failed(NOT_CAUGHT)
    assert [(each.value.name, each.place.line) for each in account.links] == [("found", 3)]


def test_number_that_equals_a_computed_one_by_chance_does_not_decide_it(failed):
    """The message says 8, as the batch size does; the number of steps was computed of that and two others."""
    _, account = failed(EQUAL_BY_CHANCE)
    assert account.links[account.root].place.code == "total = len(rows) * plan.epochs // 2"


def test_option_that_was_given_comes_before_a_default(failed, monkeypatch):
    """Two options make the number: the one that stands on the command line is to be changed."""
    monkeypatch.setattr("sys.argv", ["train.py", "--tp", "3"])
    told = answer(failed, GIVEN)
    assert "`--tp` was given as 3" in told.headline
    assert "Change `--tp 3` on the command line (train.py:5)" in told.fix.text


def test_entry_of_a_file_is_told_only_if_the_value_was_read_from_it(failed, tmp_path, monkeypatch):
    """An entry of the same name and number under another key is not where it came from."""
    monkeypatch.setattr("dtdebug.account.configs.process_start", lambda: float("inf"))
    (tmp_path / "settings.yaml").write_text("model:\n  width: 8\ndata:\n  depth: 4\n")
    _, account = failed(OF_A_FILE)
    assert not any(each.place.file.endswith(".yaml") for each in account.links)
    (tmp_path / "settings.yaml").write_text("model:\n  width: 8\n  depth: 4\ndata:\n  size: 4\n")
    _, account = failed(OF_A_FILE)
    assert account.links[account.root].place.code == "depth: 4"


def test_entry_behind_another_name_of_its_part_is_found_in_a_function_that_has_returned(failed, tmp_path, monkeypatch):
    """`part["width"]` is `settings["model"]["width"]`."""
    monkeypatch.setattr("dtdebug.account.configs.process_start", lambda: float("inf"))
    (tmp_path / "settings.yaml").write_text("at: 4\nmodel:\n  width: 3\n")
    _, account = failed(BY_ANOTHER_NAME)
    assert ("part['width']", "3", "width: 3") in [(e.value.name, e.value.text, e.place.code) for e in account.links]


def test_setting_that_both_sides_use_is_not_the_one_to_edit(failed):
    """Another size would change the layer and what it gets; a value that is not to be used is no repair."""
    told = answer(failed, OF_BOTH_SIDES)
    assert ("train.py:8" in told.fix.text, told.fix.diff) == (True, "")


def test_number_of_parts_is_found_where_another_argument_was_made_of_it(failed, monkeypatch):
    """The way back of the first argument tells where `parts` came from, and the list has as many."""
    monkeypatch.setattr("sys.argv", ["train.py", "--parts", "4"])
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert "`--parts` was given as 4 (train.py:8)" in answer(failed, PARTS_OF_AN_OPTION).headline


def test_division_that_left_a_remainder_decided_a_shape_that_does_not_fit(failed):
    """Not the number of channels, which the message has as well."""
    assert "`n = size // PATCH` (train.py:7)" in answer(failed, REMAINDER).headline


def test_entry_of_a_copied_dictionary_leads_to_its_literal(failed):
    """The way goes through a function's return and `dict(...)`, to the entry that has the value."""
    _, account = failed(PRESETS)
    found = [(each.value.name, each.value.text, each.place.line) for each in account.links]
    assert ("sizes['width']", "48", 4) in found
    assert ("sizes['heads']", "5", 4) in found


def test_name_from_a_folder_was_decided_where_the_folder_is_listed(failed):
    """What stands in a folder is no value of the program."""
    _, account = failed(FOLDER)
    assert account.links[account.root].place.code == "names = sorted(os.listdir(folder))"


def test_choice_by_the_rank_is_the_line_at_which_ranks_part():
    """A test of the rank is right on each rank; what is chosen by it differs."""

    def account(rank, depth, is_first):
        rows = (("depth", depth, 4, 0), ("first", is_first, 9, 1))
        links = tuple(
            Link(value=NamedValue(name, text), how="assigned", place=Place(file="t.py", line=line), depth=deep)
            for name, text, line, deep in rows
        )
        message = "RuntimeError: DDP expects same model across all ranks"
        return Account(rank=rank, exception=message, place=Place(file="t.py", line=20), links=links, by_rank=1)

    found = with_partings((account(0, "2", "True"), account(1, "4", "False")), None)
    assert [each.root for each in found] == [0, 0]


def test_file_that_no_save_wrote_is_not_one_of_other_classes(tmp_path):
    """The first line of torch's message advises `weights_only=False`, which helps no text file."""
    torch = pytest.importorskip("torch")
    path = tmp_path / "index.json"
    path.write_text('{"parts": 3}')
    with pytest.raises(Exception) as raised:  # noqa: PT011 - `pickle` is not imported for its class
        torch.load(path, weights_only=True)
    assert "Weights only load failed" not in describe(raised.value)
    assert "no file of torch.save" in describe(raised.value)
