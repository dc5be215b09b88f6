"""Diffs of ordinary errors: the program with the diff runs, and what only points at a place is not called certain."""

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
NO_RETURN = """def make(x):
    base = x + 1
    chain = [base]


rows = make(2)
rows.append(3)
"""
CROSSED = """def worker(batch, world):
    if batch % world:
        raise ValueError("does not divide")


batch, world = 8, 2
worker(world, batch)
"""
VARIABLE = """import os

local = int(os.environ["LOCAL_RANK_ID"])
"""
COMPUTED = """SETTINGS = {"train": 1, "eval": 2}


def settings_for(path):
    split = path.split("-")[0]
    return SETTINGS[split]


settings_for(%r)
"""


SETTER = """class Trainer:
    def __init__(self):
        self.optimizer = None

    def build(self):
        self.optimizer = [1]

    def fit(self):
        return self.optimizer.pop()


trainer = Trainer()
trainer.fit()
"""
WRAPPER = """class Net:
    def __init__(self):
        self.rate = 1


class Wrapped:
    def __init__(self, module):
        self.module = module

    def no_sync(self):
        return self.module.rate


class Steps:
    def __init__(self, net):
        self.net = net
        self.wrapped = Wrapped(net)

    def quiet(self):
        return self.net.no_sync()


Steps(Net()).quiet()
"""
OLDER = """import torch


class Average:
    def __init__(self, model):
        self.shadow = model.weight.detach().clone()

    def update(self, model):
        self.shadow.lerp_(model.weight, 0.5)


def widen(model):
    return model.double()


def main():
    model = torch.nn.Linear(2, 2)
    average = Average(model)
    model = widen(model)
    with torch.no_grad():
        average.update(model)


main()
"""
CROSSED_ORDER = """class Loader:
    def __init__(self, batch):
        self.batch = batch


class Scheduler:
    def step(self):
        pass


def prepare(*objects):
    return objects


def main(batch=8):
    loader, scheduler = Loader(batch), Scheduler()
    loader, scheduler = prepare(scheduler, loader)
    scheduler.step()


main()
"""
UNMATCHED = """SETTINGS = {"schedule": "warmup_linear"}


def make(settings):
    kind = settings["schedule"]
    if kind == "cosine":
        return [1]
    if kind == "linear_warmup":
        return [2]


steps = make(SETTINGS)
steps.append(3)
"""
TEXT_OF_ENVIRONMENT = """import os

local = os.environ["LOCAL_RANK"]
seed = 100 + local
"""
OTHER_LAUNCHER = """import os

local = int(os.environ["SLURM_LOCALID"])
"""
NEAR_KEY = """state = {"model": 1, "optimizer": 2, "global_step": 3}
print(state["step"])
"""
OTHER_KEY = """def save():
    return {"epoch": 1, "model": 2, "optimizer": 3}


state = save()
print(state["model"], state["epoch"])
print(state["opt_state"])
"""
INITIALS = OTHER_KEY.replace("optimizer", "learning_rate").replace("opt_state", "lr")
ONE_TOO_FAR = """COUNT = 4
parts = [1, 2, 3, 4]
for i in range(1, COUNT + 1):
    print(parts[i])
"""
NEXT_ONE = """def steps(parts):
    return [parts[i + 1] - parts[i] for i in range(len(parts))]


def pairs(parts):
    for i in range(len(parts)):
        print(parts[i + 1])


pairs([1, 2, 3])
"""
ROUNDED = """def ramp(step, warmup):
    return step / warmup


def main(steps=10, share=0.05):
    warmup = int(steps * share)
    return ramp(1, warmup)


main()
"""
SET_ELSEWHERE = """class Losses:
    def __init__(self):
        self.rows = []

    def start(self):
        self.rows = 0.0

    def add(self, loss):
        self.rows.append(loss)


losses = Losses()
losses.start()
losses.add(1.0)
"""


@pytest.fixture(autouse=True)
def _own_process(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["train.py"])
    monkeypatch.chdir(tmp_path)
    for name in ("LOCAL_RANK_ID", "SLURM_LOCALID"):
        monkeypatch.delenv(name, raising=False)


def run(path):
    """Run a program here; raises what it raises."""
    exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__", "__file__": str(path)})


def answered(folder, text, environment=None):
    """Return the answer to what a program raises."""
    path = folder / "train.py"
    path.write_text(text)
    try:
        run(path)
    except Exception as error:
        TRACE.__set__(error, TRACE.__get__(error).tb_next.tb_next)
        found = capture(error, seconds=5)
    else:
        raise AssertionError("it did not fail")
    output = f'Traceback (most recent call last):\n  File "{path}", line {found.place.line}, in <module>\n'
    excerpt = Excerpt(file=str(path), first=1, lines=tuple(text.splitlines()))
    snapshot = Snapshot(
        output=f"{output}{found.exception}\n", accounts=(found,), excerpts=(excerpt,), environment=environment or {}
    )
    return build_answer(diagnose(load(), snapshot), snapshot)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (NO_RETURN, 3), (CROSSED, 7), (VARIABLE, 3), (SETTER, 13), (WRAPPER, 20), (UNMATCHED, 1), (OTHER_LAUNCHER, 3),
        (TEXT_OF_ENVIRONMENT, 3), (NEAR_KEY, 2), (OLDER, 18), (CROSSED_ORDER, 17), (OTHER_KEY, 7), (INITIALS, 7),
        (ONE_TOO_FAR, 3), (NEXT_ONE, 6), (ROUNDED, 6),
    ],
)  # fmt: skip
def test_the_program_runs_with_the_diff(tmp_path, monkeypatch, text, line):
    """A missing return or call, arguments in each other's place, another name for the variable, object, word or key."""
    monkeypatch.setenv("LOCAL_RANK", "1")
    answer = answered(tmp_path, text, {"LOCAL_RANK": "1"})
    assert ("train.py", line) == (Path(answer.fix.file).name, answer.fix.line)
    assert not answer.fix.proven
    path = tmp_path / "train.py"
    path.write_text(apply_patch(text, answer.fix.diff))
    run(path)


@pytest.mark.parametrize(
    "text",
    [
        NO_RETURN.replace("    chain = [base]\n", "    if base > 9:\n        return [base]\n"),
        NO_RETURN.replace("    chain = [base]\n", "    chain, end = [base], 0\n"),
        CROSSED.replace("(batch, world):", "(size, count):").replace("batch % world", "size % count"),
        VARIABLE.replace("LOCAL_RANK_ID", "DATA_FOLDER"),
    ],
)
def test_no_diff_where_several_would_do(tmp_path, text):
    """A function that returns on another path, several names, names that say nothing, no near variable."""
    answer = answered(tmp_path, text, {"LOCAL_RANK": "1"})
    assert answer.fix is None or not answer.fix.diff


def test_the_line_that_computes_a_key_is_blamed_where_its_source_has_one_of_the_keys(tmp_path):
    """Only likely: nothing proves that this key was meant."""
    answer = answered(tmp_path, COMPUTED % "shards-train-2")
    assert 5 == answer.fix.line
    assert "'train'" in answer.fix.text
    assert "likely" == answer.sure


def test_both_places_are_named_where_neither_the_key_nor_the_mapping_is_known_to_be_wrong(tmp_path):
    """The answer is not certain of one of them."""
    answer = answered(tmp_path, COMPUTED % "shards-2")
    assert "train.py:5" in answer.headline
    assert "train.py:1" in answer.headline
    assert "likely" == answer.sure


NEVER_SET_UP = """import os
import tempfile

import torch
import torch.distributed as dist


def prepare(backend="gloo"):
    file = tempfile.mkdtemp() + "/store"
    dist.init_process_group(backend, init_method=f"file://{file}", rank=0, world_size=1)


def main():
    total = torch.ones(2)
    dist.all_reduce(total)
    dist.destroy_process_group()


main()
"""
GRAPH_KEPT = """import torch

layer, state = torch.nn.Linear(2, 2), torch.zeros(1, 2)
for row in torch.ones(3, 1, 2):
    state = torch.tanh(torch.add(layer(row), state))
    loss = state.sum()
    loss.backward()
"""
STATE_KEPT = """import torch

cell = torch.nn.GRUCell(2, 2)
state = torch.zeros(1, 2)
for row in torch.ones(3, 1, 2):
    state = cell(row, state)
    loss = state.sum()
    loss.backward()
"""
SUM_KEPT = """import torch

layer, total = torch.nn.Linear(2, 2), 0.0
for row in torch.ones(3, 1, 2):
    loss = layer(row).pow(2).mean()
    total += loss
    total.backward()
"""


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (NEVER_SET_UP, 15, "`prepare`, which sets it up, is never called (train.py:8)"),
        (STATE_KEPT, 6, "`state` carries the graph of the pass before"),
        (SUM_KEPT, 7, "`total` sums up the losses of the passes before"),
    ],
)
def test_what_has_no_line_on_the_stack_is_found_and_put_right(tmp_path, monkeypatch, text, line, said):
    """The function that nobody calls, the name that keeps a graph: the program runs with the diff."""
    answer = answered(tmp_path, text)
    assert said in answer.headline
    assert answer.fix.line == line
    (tmp_path / "train.py").write_text(apply_patch(text, answer.fix.diff))
    run(tmp_path / "train.py")


def test_a_graph_that_is_kept_by_no_argument_gets_no_diff(tmp_path):
    """The name stands within an expression: to cut it there may not be meant."""
    assert answered(tmp_path, GRAPH_KEPT).fix.diff == ""


UNDER_AN_OPTION = """import argparse

import torch
import torch.distributed as dist


def prepare(several):
    if several:
        dist.init_process_group("gloo")


p = argparse.ArgumentParser()
p.add_argument("--several", action="store_true")
a = p.parse_args()
prepare(a.several)
dist.barrier()
"""


def test_the_option_that_keeps_the_group_from_being_set_up_is_named(tmp_path):
    answer = answered(tmp_path, UNDER_AN_OPTION)
    assert answer.headline == (
        "`barrier` needs a process group: `init_process_group` runs only if `several` (train.py:8), "
        "and `--several` is not given (train.py:13)."
    )
    assert answer.fix.text == "Pass `--several`."


LATE_FILE = """import json
import os
import torch.distributed as dist


def vocabulary(rank, path):
    if rank == 0:
        with open(path, "w") as file:
            json.dump([1], file)
    %swith open(path) as file:
        return json.load(file)


vocabulary(1, "words.json")
"""


def test_a_file_that_another_rank_writes_is_waited_for(tmp_path):
    """A barrier comes before the line that reads it; where there is one, the rank does not fail for that."""
    answer = answered(tmp_path, LATE_FILE % "")
    assert "only ranks with `rank == 0` write it (train.py:8), and nothing waits for them" in answer.headline
    assert "+    dist.barrier()\n     with open(path) as file:" in answer.fix.diff
    waits = LATE_FILE % "getattr(dist, 'nothing', lambda: 0)()\n    "
    assert "nothing waits" in answered(tmp_path, waits).headline
    waits = (LATE_FILE % "barrier()\n    ").replace("import os\n", "def barrier():\n    pass\n")
    headline = answered(tmp_path, waits).headline
    assert "nothing waits" not in headline
    assert "(train.py:9) writes a file of that name" in headline


LATE_STATS = """import json
import os
import torch.distributed as dist


class Stats:
    def __init__(self, folder, rank):
        self.path = os.path.join(folder, "stats.json")
        self.rank = rank

    def compute(self):
        %swith open(f"{FOLDER}/stats.json", "w") as file:
            json.dump([1], file)

    def load(self):
        with open(self.path) as file:
            return json.load(file)


FOLDER = "nowhere"


def main(rank):
    stats = Stats(FOLDER, rank)
    if rank == 0:
        stats.compute()
    %s
    rows = stats.load()


main(1)
"""


@pytest.mark.parametrize(
    ("ahead", "between", "sure"),
    [
        ("", "pass", "certain"),
        ("if len(FOLDER) > 50:\n            return\n        ", "pass", "likely"),  # the write may not be made
        ("", "gather()", "likely"),  # the ranks may have met
    ],
)
def test_a_file_that_a_method_of_another_rank_writes_is_waited_for(tmp_path, ahead, between, sure):
    """The paths are one, by an f-string and by a join; the barrier belongs where the ranks part."""
    text = LATE_STATS.replace("import os\n", "import os\ngather = print\n") % (ahead, between)
    if sure == "certain":
        text = text.replace("open(self.path)", 'open(os.path.join(FOLDER, "stats.json"))')
    answer = answered(tmp_path, text)
    assert sure == answer.sure
    if between == "pass":
        assert "only ranks with `rank == 0` write it" in answer.headline
        assert "+    dist.barrier()\n     rows = stats.load()" in answer.fix.diff
    else:
        assert "writes a file of that name" in answer.headline
        assert not answer.fix.diff


def test_a_file_of_another_name_is_not_taken_for_the_missing_one(tmp_path):
    text = (LATE_STATS % ("", "pass")).replace('f"{FOLDER}/stats.json"', 'f"{FOLDER}/old_stats.json"')
    assert "write" not in answered(tmp_path, text).headline


SEVERAL_LINES = """from torch.utils.data import DataLoader, RandomSampler

rows = list(range(8))
sampler = RandomSampler(rows)
loader = DataLoader(
    rows,
    batch_size=2,
    prefetch_factor=4,
    sampler=sampler,
)
"""


def test_a_call_of_several_lines_gets_a_diff_of_the_line_that_is_wrong(tmp_path):
    answer = answered(tmp_path, SEVERAL_LINES)
    changed = [row for row in answer.fix.diff.splitlines()[2:] if row[0] in "+-"]
    assert changed == ["-    prefetch_factor=4,"]
    path = tmp_path / "train.py"
    path.write_text(apply_patch(SEVERAL_LINES, answer.fix.diff))
    run(path)
    assert "prefetch_factor" not in path.read_text()


BARE_MODEL = """import torch


def weights(model):
    return model.module.state_dict()


weights(torch.nn.Sequential(torch.nn.Linear(2, 2)))
"""
LONGER_KEY = """saved = {"model": 1, "optimizer": 2}
start = saved["model_state"]
"""
OWN_LINE = """import os

places = {
    "local": int(os.environ["LOCAL_RANK_ID"]),
}
"""
TYPES = """import torch

layer = torch.nn.Sequential(torch.nn.Linear(3, 1))
rows = torch.ones(2, 3, dtype=torch.float64)
out = layer(rows)
"""


IN_ORDER = """def prepare(*objects):
    return objects


class Session:
    def __init__(self, model, rate, rows):
        self.model, self.rows, self.rate = prepare(model, rate, rows)

    def run(self):
        for row in self.rows:
            print(row)


Session("model", 0.5, [1, 2]).run()
"""


@pytest.mark.parametrize(
    ("text", "now"),
    [
        (BARE_MODEL, 'return getattr(model, "module", model).state_dict()'),
        (LONGER_KEY, 'start = saved["model"]'),
        (OWN_LINE, '"local": int(os.environ["LOCAL_RANK"]),'),
        (IN_ORDER, "self.model, self.rate, self.rows = prepare(model, rate, rows)"),
        (TYPES, "out = layer(rows.to(torch.float32))"),
    ],
)
def test_the_line_is_put_right_and_the_program_runs(tmp_path, monkeypatch, text, now):
    """A model that is not wrapped, a longer key, an entry on a line of its own, the dtype of a layer inside."""
    monkeypatch.setenv("LOCAL_RANK", "1")
    answer = answered(tmp_path, text, {"LOCAL_RANK": "1"})
    added = [row[1:].strip() for row in answer.fix.diff.splitlines() if row.startswith("+") and row[1] != "+"]
    assert added == [now]
    path = tmp_path / "train.py"
    path.write_text(apply_patch(text, answer.fix.diff))
    run(path)


def test_a_name_that_differs_in_its_separators_alone_is_the_near_one(tmp_path):
    """Though others are as close by their letters."""
    text = 'sizes = {"local_world_size": 1, "role_world_size": 2}\nsizes["local_worldsize"]\n'
    assert '+sizes["local_world_size"]' in answered(tmp_path, text).fix.diff


def test_the_line_that_set_an_attribute_last_is_told(tmp_path):
    """Of two lines that set it, the one whose literal is the value; what was meant is not known: there is no diff."""
    answer = answered(tmp_path, SET_ELSEWHERE)
    assert "`self.rows` is 0.0, which has no `append`" in answer.headline
    assert (6, "") == (answer.fix.line, answer.fix.diff)
