"""Cells of a notebook, read as one program with the ranks whose stacks run through them."""

import re

import pytest

from dtdebug.check.stack_files import sourced_snapshot
from dtdebug.privacy.boundary import diagnose
from dtdebug_taxonomy.inference.from_source import findings_in_cells
from dtdebug_taxonomy.inference.message_edits import LISTED
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.answer import Answer, Fix
from dtdebug_taxonomy.model.ranks import Alternative, CallSite, Frame, RankState, Verdict
from dtdebug_taxonomy.model.snapshot import ExceptionInfo, Snapshot
from dtdebug_taxonomy.presentation.answer_text import to_short_text
from dtdebug_taxonomy.source.notebook import Notebook
from dtdebug_taxonomy.source.text import Span

VALIDATE = """import torch.distributed as dist

def validate(value):
    dist.all_reduce(value)
    return value"""
TRAIN = """def train(rank, value):
    for epoch in range(2):
        if rank == 0:
            print(validate(value))
        dist.barrier()"""
MEAN = """import torch.distributed as dist

def mean(x, n):
    total = dist.all_reduce(x)
    return total.item() / n"""
INIT = """import torch.distributed as dist
from torch.multiprocessing import Process

def init(rank, size):
    dist.init_process_group('gloo', rank=rank, world_size=size)

Process(target=init, args=(0, 2)).start()"""
START = 'mp.start_processes(train, nprocs=2, start_method="fork")'


def sourced(*cells, **fields):
    """A snapshot of a failed last cell, with what its source shows."""
    numbers = tuple(range(1, len(cells) + 1))
    return sourced_snapshot(Snapshot(cells=cells[:-1], cell=cells[-1], cell_numbers=numbers, **fields))


def raised(kind, message, *places, rank=0):
    """An exception at (cell, line)."""
    frames = tuple(Frame(f"cell In[{cell}]", line, "main") for cell, line in places)
    return ExceptionInfo(type=kind, message=message, frames=frames, rank=rank)


def test_the_source_in_cells_decides_which_rank_made_the_extra_call():
    """A function and its launch stand in different cells."""
    stacks = {0: (("cell In[2]", 4), ("cell In[1]", 4)), 1: (("cell In[2]", 5),)}
    ranks = tuple(RankState(rank=r, stack=tuple(Frame(*at, "f") for at in stack)) for r, stack in stacks.items())
    other = Alternative(kind="extra", culprits=(0,), because="rank 0 called all_reduce", refute="")
    sites = tuple(CallSite(rank, *stack[-1], "f") for rank, stack in stacks.items())
    verdict = Verdict(kind="extra", culprits=(1,), waiting=(0,), confidence=0.35, alternatives=(other,), sites=sites)
    found = sourced(VALIDATE, TRAIN, START, ranks=ranks, verdict=verdict)

    assert (0,) == found.verdict.culprits
    (finding,) = (f for f in found.source_findings if f.check == "DT101")
    assert ("cell In[2]", 4, "line", 0) == (finding.file, finding.line, finding.near, finding.rank)


def test_a_fault_that_gives_a_variable_its_value_is_the_cause_where_it_is_used():
    """It fails one line below, and in a cell that is not the one that was run."""
    error = raised("AttributeError", "'NoneType' object has no attribute 'item'", (2, 1), (1, 5))
    first = diagnose(load(), sourced(MEAN, "mean(x, 3)", exception=error)).advice[0]

    assert ("cell In[1]", 4) == (first.file, first.line)
    assert first.title.startswith("all_reduce() returns None")
    assert "+    total = x" in first.diff.splitlines()


def test_a_fault_in_another_function_is_not_the_cause():
    """It is not run on the way to the error."""
    error = raised("AttributeError", "'NoneType' object has no attribute 'item'", (2, 1))
    found = diagnose(load(), sourced(MEAN, "model.item()", exception=error))

    assert not any("DT422" in a.title for a in found.advice)


GLOO = "import torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
NO_ADDRESS = "using env:// rendezvous: environment variable MASTER_ADDR expected, but not set"
ON_CPU = (
    "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU "
    "modules or CPU modules, but got device_ids [0], output_device None, and module parameters {device(type='cpu')}."
)
UNUSED = "It looks like your LightningModule has parameters that were not used in producing the loss"
EARLY = (
    "To launch a multi-device training from your notebook, the `Accelerator` should only be initialized inside your "
    "training function."
)


@pytest.mark.parametrize(
    ("cell", "message", "added"),
    [
        (
            INIT,
            NO_ADDRESS,
            "    dist.init_process_group('gloo', rank=rank, world_size=size, init_method=\"tcp://127.0.0.1:29500\")",
        ),
        (
            f"{GLOO}dist.init_process_group('gloo')\nmodel = DDP(net, device_ids=[0], find_unused_parameters=True)",
            ON_CPU,
            "model = DDP(net, find_unused_parameters=True)",
        ),
        (
            'import lightning as L\ntrainer = L.Trainer(devices=2, strategy="ddp_notebook")\ntrainer.fit(model)',
            UNUSED,
            'trainer = L.Trainer(devices=2, strategy="ddp_notebook_find_unused_parameters_true")',
        ),
        (
            'from transformers import TrainingArguments\nargs = TrainingArguments("out", max_steps=3)',
            "Parameter indices which did not receive grad for rank 0: 2 3",
            'args = TrainingArguments("out", max_steps=3, ddp_find_unused_parameters=True)',
        ),
    ],
)
def test_a_message_asks_for_an_edit_of_a_cell(cell, message, added):
    """The message says what, the cell says where."""
    found = sourced(cell, "run()", exception=raised("RuntimeError", message, (2, 1)))
    diffs = [f.diff for f in found.source_findings if not f.check]

    assert [f"+{added}"] == [
        row for diff in diffs for row in diff.splitlines() if row.startswith("+") and row[1:2] != "+"
    ]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("import torch.distributed as dist\ndist.init_process_group('gloo', rank=0, world_size=2)", NO_ADDRESS),
        (f"{GLOO}dist.init_process_group('nccl')\nmodel = DDP(net, device_ids=[0])", ON_CPU),
        ('import lightning as L\ntrainer = L.Trainer(devices=2, strategy="fsdp")', UNUSED),
    ],
)
def test_a_message_asks_for_nothing_where_the_cell_does_not_fit(cell, message):
    """A launcher may set the address, the model may belong on the GPU, the strategy may have no such option."""
    found = sourced(cell, "run()", exception=raised("RuntimeError", message, (2, 1)))

    assert not [f for f in found.source_findings if f.diff and not f.check]


def test_an_accelerator_made_too_early_is_named():
    """The launch is where it fails; the cell to change is another one."""
    made = "from accelerate import Accelerator, notebook_launcher\naccelerator = Accelerator()"
    start = "notebook_launcher(train, num_processes=2)"
    found = diagnose(load(), sourced(made, start, exception=raised("ValueError", EARLY, (2, 1), rank=None)))

    assert "Accelerator" in found.advice[0].title
    assert ("cell In[1]", 2) == (found.advice[0].file, found.advice[0].line)
    assert "inside train()" in found.advice[0].fix


MONITOR = "stop = EarlyStopping(monitor='val_acc', mode='max')"


@pytest.mark.parametrize(
    "message",
    [
        "`ModelCheckpoint(monitor='val_acc')` could not find the key in the metrics: ['loss', 'val_accuracy'].",
        "Early stopping on metric `val_acc`, which is not available. Use any of the following: `loss`, `val_accuracy`",
    ],
)
def test_a_name_that_a_message_does_not_list_is_written_as_the_near_one(message):
    """Wherever the program writes it: the stack has only the call into the library."""
    first = diagnose(load(), sourced(MONITOR, "fit()", exception=raised("RuntimeError", message, (2, 1)))).advice[0]

    assert ("cell In[1]", 1) == (first.file, first.line)
    assert "+stop = EarlyStopping(monitor='val_accuracy', mode='max')" in first.diff.splitlines()


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (MONITOR, "no metric 'val_acc': there are ['loss', 'lr']"),
        (f"{MONITOR}\nname = 'val_acc'", "no metric 'val_acc': there are ['loss', 'val_accuracy']"),
        ("stop = EarlyStopping(monitor=name)", "no metric 'val_acc': there are ['loss', 'val_accuracy']"),
    ],
    ids=["none is near", "written twice", "not written"],
)
def test_a_name_that_can_be_meant_otherwise_gets_no_edit(cell, message):
    found = diagnose(load(), sourced(cell, "fit()", exception=raised("RuntimeError", message, (2, 1))))

    assert not any(a.cause == LISTED for a in found.advice)


LAUNCH = "import torch.multiprocessing as mp\nmp.start_processes(train, args=(2, 3), nprocs=2, start_method='fork')"
TAKES = """import os

def train(world_size, epochs):
    rank = int(os.environ['RANK'])
    print(rank, world_size, epochs)"""


def test_a_fix_in_the_cell_of_the_function_is_shown_for_the_cell_that_starts_it():
    """What is launched in one cell is defined in another."""
    error = raised("TypeError", "train() takes 2 positional arguments but 3 were given", (2, 2))
    first = diagnose(load(), sourced(TAKES, LAUNCH, exception=error)).advice[0]

    assert ("cell In[1]", 3) == (first.file, first.line)
    assert {"-def train(world_size, epochs):", "+def train(rank, world_size, epochs):"} < {*first.diff.splitlines()}


def test_a_fix_of_two_cells_has_one_diff_that_names_both():
    """A card applies it whole or not at all; its plain text tells which line is of which cell."""
    cells = (
        "import torch\nfrom torch.distributed.fsdp import FullyShardedDataParallel as FSDP",
        "model = torch.nn.Linear(8, 8)\noptimizer = torch.optim.Adam(model.parameters())",
        "model = FSDP(model)\noptimizer.step()",
    )
    stacks = {0: [Frame("cell In[5]", 2, "<module>")]}
    found = findings_in_cells(load(), cells, ("In[4]", "In[5]", "In[9]"), stacks)
    diff = next(f.diff for f in found if f.check == "DT312")
    shown = to_short_text(Answer(headline="x", fix=Fix(text="Make it after the wrap.", diff=diff)))

    assert diff.count("--- In[5]\n+++ In[5]\n") == diff.count("--- In[9]\n+++ In[9]\n") == 1
    assert [row.strip() for row in shown.splitlines() if row.strip()[0] in "#+-"] == [
        "# In[5]",
        "- optimizer = torch.optim.Adam(model.parameters())",
        "# In[9]",
        "+ optimizer = torch.optim.Adam(model.parameters())",
    ]


def test_a_message_names_lines_as_its_cell_counts_them_and_those_of_another_cell_with_its_name():
    """The checks read all cells as one program, whose line numbers nobody sees."""
    init = "import torch.distributed as dist"
    leave = "def step(rank, x):\n    if rank != 0:\n        return None\n    dist.all_reduce(x)\n    return x"
    stacks = {0: [Frame("cell In[3]", 4, "step")]}
    found = findings_in_cells(load(), ("x = 1\n" * 9, init, leave), ("In[1]", "In[2]", "In[3]"), stacks)
    read = Notebook([("code", "a = 1\nb = 2"), ("code", "c = 3\nd = 4")])
    message = "made (line 2), used at line 4; b.py line 2, line 2 of c"

    assert ["line 2"] == [re.search(r"line \d+", f.message)[0] for f in found if f.check == "DT106"]
    assert read.message_in_cell(read.code, Span(12, 17), message, ("In[5]", "In[6]")) == (
        "made (line 2 of cell In[5]), used at line 2; b.py line 2, line 2 of c"
    )
