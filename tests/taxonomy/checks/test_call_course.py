"""Calls are followed in the order in which they run, through functions and classes of several files."""

import pytest

from dtdebug_taxonomy.checks.run.examine import examine
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.checks.shared.course import courses
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.project import Project

KEEPER = """
import torch
import torch.distributed as dist

class Keeper:
    def __init__(self, folder):
        self.folder = folder
        self.main = dist.get_rank() == 0

    def save(self, step, model):
        {guard}
        torch.save(model.state_dict(), f"{{self.folder}}/{{step}}.pt")
"""
MAIN = """
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from keeper import Keeper

dist.init_process_group("nccl")
model = DDP(net)
keeper = Keeper("runs")
for step in range(10):
    keeper.save(step, model.module)
"""
METER = """
import torch.distributed as dist

class Meter:
    def value(self):
        {meets}
        return self.total.item()
"""
SHOWS = """
import torch.distributed as dist
from torch.utils.data import DistributedSampler
from meter import Meter

dist.init_process_group("nccl")
sampler = DistributedSampler(test_set)
meter = Meter()
accuracy = meter.value()
if dist.get_rank() == 0:
    print(accuracy)
"""


def program(text, **others):
    code = Code(text, path="main.py")
    code.project = Project(lambda path: others.get(path.removesuffix(".py")))
    return code


def ids(code, check):
    return [f.check.id for f in examine(code, Settings(select=(check,)))]


@pytest.mark.parametrize(("guard", "expected"), [("pass", ["DT602"]), ("if not self.main: return", [])])
def test_a_checkpoint_that_a_class_of_another_file_saves_on_every_rank_is_seen(guard, expected):
    assert ids(program(MAIN, keeper=KEEPER.format(guard=guard)), "DT602") == expected


@pytest.mark.parametrize(("meets", "expected"), [("pass", ["DT408"]), ("dist.all_reduce(self.total)", [])])
def test_a_metric_that_another_file_reduces_is_that_of_all_ranks(meets, expected):
    assert ids(program(SHOWS, meter=METER.format(meets=meets)), "DT408") == expected


def test_an_object_is_the_same_in_each_function_that_gets_it():
    text = "class A:\n    def __init__(self, x):\n        self.x = x\n    def go(self):\n        use(self.x)\n"

    steps = courses(program(text + "thing = make()\nA(thing).go()\n"))[0]

    made, used = (next(s for s in steps if s.name == name) for name in ("make", "use"))
    assert used.given == (made.result,)
    assert [c.node.lineno for c in used.calls] == [7]


def test_the_branches_of_a_condition_exclude_each_other_also_after_one_that_leaves():
    text = "def f(a):\n    if a:\n        one()\n        return\n    two()\nf(1)\n"

    one, two = (s for s in courses(program(text))[0] if s.name in {"one", "two"})

    assert one.excludes(two)
    assert two.excludes(one)
    assert not one.excludes(one)


def test_a_function_that_calls_itself_ends():
    steps = courses(program("def f(x):\n    g(x)\n    f(x)\nf(1)\n"))[0]

    assert [s.name for s in steps].count("g") == 1
