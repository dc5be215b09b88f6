"""Calls that lead to a collective in another module of the project are followed, and only there."""

import json

import pytest

from dtdebug.check.examine_file import Selection, examine_file, project
from dtdebug.check.files import settings_of
from dtdebug.cli.main import main

PLOT = """import torch.distributed as dist

class Plotter:
    def plot(self, rows):
        for row in rows:
            self.infer(row)

    def infer(self, row):
        dist.barrier()

class Quiet(Plotter):
    pass

def gather(rows):
    return _all(rows)

def _all(rows):
    dist.all_gather_object([None] * 2, rows)

def of_group(rows, group):
    dist.all_reduce(rows, group=group)

def store(rows, path):
    with open(path, "w") as file:
        file.write(str(rows))

def store_settled(rows, path):
    store(rows, path)

def store_on_main(rows, path):
    if dist.get_rank() == 0:
        store(rows, path)

def guarded(rows, rank):
    if rank == 0:
        dist.barrier()
"""
HEAD = "import torch.distributed as dist\n"


@pytest.fixture(autouse=True)
def tree(monkeypatch, tmp_path):
    settings_of.cache_clear()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text("from .plot import Quiet, gather\n")
    (tmp_path / "mine" / "plot.py").write_text(PLOT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(tree, text, name="train.py", checks=("DT101", "DT106")):
    (tree / name).write_text(HEAD + text)
    examined = examine_file(tree / name, Selection(select=checks))
    assert examined.problems == ()
    return [(f.id, f.line) for f in examined.findings]


@pytest.mark.parametrize(
    "text",
    [
        "from mine.plot import gather\ndef f(rows, rank):\n    if rank == 0:\n        gather(rows)\n",
        "from mine import gather\ndef f(rows, rank):\n    if rank == 0:\n        gather(rows)\n",
        "import mine.plot\ndef f(rows, rank):\n    if rank == 0:\n        mine.plot.gather(rows)\n",
        "from mine.plot import Plotter\ndef f(rows, rank, p: Plotter):\n    if rank == 0:\n        p.plot(rows)\n",
        "from mine import Quiet; p = Quiet()\ndef f(rows, rank):\n    if rank == 0:\n        p.plot(rows)\n",
    ],
    ids=["function", "re-export", "module", "annotation", "base class"],
)
def test_a_call_that_leads_to_a_collective_elsewhere_is_reported(tree, text):
    assert found(tree, text) == [("DT101", 5)]


def test_the_module_and_the_collective_are_named(tree, capsys):
    (tree / "train.py").write_text(
        HEAD + "from mine import gather\ndef f(r, rank):\n    if rank == 0:\n        gather(r)\n"
    )

    main(["check", "--format", "json", "--select", "DT101", "train.py"])

    (row,) = json.loads(capsys.readouterr().out)
    assert row["message"].startswith("gather(), which calls all_gather_object() in plot.py, runs only on rank 0")


@pytest.mark.parametrize(
    "text",
    [
        "from mine.plot import of_group\ndef f(rows, rank, g):\n    if rank == 0:\n        of_group(rows, g)\n",
        "from mine.plot import guarded\ndef f(rows, rank):\n    if rank == 0:\n        guarded(rows, rank)\n",
        "from mine import gather\ndef f(rows, rank):\n    gather(rows)\n    if rank == 0:\n        print(rows)\n",
        "from theirs import gather\ndef f(rows, rank):\n    if rank == 0:\n        gather(rows)\n",
        "from mine import gather\ndef f(r, rank):\n  if rank == 0:\n    gather(r)\n  else:\n    gather(r)\n",
    ],
    ids=["of a group", "guarded itself", "on all ranks", "another package", "in both branches"],
)
def test_a_call_that_all_ranks_make_or_that_waits_for_nobody_is_left_alone(tree, text):
    assert found(tree, text) == []


def test_an_option_that_another_module_reads_otherwise_is_left_alone(tree, capsys):
    """`args` goes to a function that takes the rank from the environment; to another function it does not matter."""
    (tree / "setup.py").write_text(
        "import os\n\ndef start(args):\n    args.gpu = int(os.environ['LOCAL_RANK'])\n\n"
        "def show(args):\n    print(args)\n"
    )
    program = (
        "import argparse\nimport torch\nfrom setup import {0}\n\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--local_rank', type=int, default=0)\nargs = parser.parse_args()\n{0}(args)\n"
        "torch.cuda.set_device(args.local_rank)\n"
    )
    for name, expected in (("start", []), ("show", ["DT221"])):
        (tree / "train.py").write_text(program.format(name))
        main(["check", "--format", "json", "--select", "DT221", "train.py"])
        assert expected == [row["id"] for row in json.loads(capsys.readouterr().out)]


@pytest.mark.parametrize(
    ("call", "reported"),
    [
        ('store(rows, "rows.txt")', True),
        ('store_settled(rows, "rows.txt")', True),
        ('store_on_main(rows, "rows.txt")', False),
        ('store(rows, f"rows_{rank}.txt")', False),
    ],
    ids=["written there", "one call further", "by rank 0", "a file of each rank"],
)
def test_a_call_by_every_rank_that_leads_to_a_write_elsewhere_is_reported(tree, call, reported):
    text = (
        "from mine.plot import store, store_settled, store_on_main\ndef main(rows):\n    rank = dist.get_rank()\n"
        f"    if rank == 0:\n        print(rows)\n    {call}\n"
    )

    assert found(tree, text, checks=("DT605",)) == ([("DT605", 7)] if reported else [])


def test_modules_that_import_each_other_come_to_an_end(tree):
    (tree / "a.py").write_text("from b import g\ndef f():\n    g()\n")
    (tree / "b.py").write_text("from a import f\ndef g():\n    f()\n")

    assert found(tree, "from a import f\ndef h(rank):\n    if rank == 0:\n        f()\n") == []


def test_what_is_known_of_a_module_counts_for_each_file_that_uses_it(tmp_path):
    """The second file uses what is known of a module already, and rests on the modules behind it all the same."""
    (tmp_path / "behind.py").write_text('import os\n\ndef first():\n    return int(os.environ["RANK"])\n')
    (tmp_path / "between.py").write_text("from behind import first\n\ndef helper():\n    return first()\n")
    text = "import torch.distributed as dist\nfrom between import helper\n\ndef main():\n    x = helper()\n"
    text += "    if x > 3:\n        dist.barrier()\n\nmain()\n"
    around = project()
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(text)
        examined = examine_file(tmp_path / name, Selection(), around)
        assert [f.id for f in examined.findings] == ["DT101"]
        assert examined.consulted == (str(tmp_path / "behind.py"), str(tmp_path / "between.py"))


def test_a_file_is_examined_again_when_a_module_that_it_leads_to_has_changed(tree, capsys, monkeypatch):
    monkeypatch.setenv("DTDEBUG_STATE", str(tree / "state"))
    for n in range(70):
        (tree / f"m{n:02}.py").write_text(HEAD)
    (tree / "train.py").write_text(
        HEAD + "from mine import gather\ndef f(r, rank):\n    if rank == 0:\n        gather(r)\n"
    )
    arguments = ["check", "--jobs", "1", "--select", "DT101", "--format", "json", "."]
    main(arguments)
    before = json.loads(capsys.readouterr().out)
    (tree / "mine" / "plot.py").write_text("def gather(rows):\n    return rows\n")

    main(arguments)

    assert [r["path"] for r in before] == ["mine/plot.py", "train.py"]
    assert json.loads(capsys.readouterr().out) == []


def test_a_sampler_of_another_module_is_told_the_epoch_where_its_loader_is_read(tree, capsys):
    made = "from torch.utils.data import DataLoader, DistributedSampler\n\ndef build(data):\n"
    made += "    return DataLoader(data, sampler=DistributedSampler(data))\n"
    read = "from torch.nn.parallel import DistributedDataParallel\nfrom mine.data import build\n"
    read += "net, loader = DistributedDataParallel(net), build(rows)\nfor epoch in range(9):\n{tell}"
    read += "    for row in loader:\n        net(row).backward()\n"
    (tree / "mine" / "data.py").write_text(made)
    (tree / "silent.py").write_text(read.format(tell=""))
    (tree / "telling.py").write_text(read.format(tell="    loader.sampler.set_epoch(epoch)\n"))

    main(["check", "--no-cache", "--format", "json", "silent.py", "telling.py"])

    found = json.loads(capsys.readouterr().out)
    assert [(f["path"], f["id"], f["line"]) for f in found] == [("silent.py", "DT502", 5)]
    assert "(data.py line 4)" in found[0]["message"]
