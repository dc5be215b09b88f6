"""The way back to a line of a configuration file, and to a loop that was to change a value and never ran."""

import os
import sys
from pathlib import Path

import pytest

from dtdebug.account.capture import capture
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot

TRACE = BaseException.__dict__["__traceback__"]


def account(folder, text, **files):
    """Return the account of what a program raises that has configuration files at its side."""
    path = folder / "train.py"
    path.write_text(text)
    for name, content in files.items():
        file = folder / name.replace("_", ".")
        file.write_text(content)
        os.utime(file, (1e9, 1e9))
    try:
        exec(compile(text, str(path), "exec"), {"__name__": "__main__", "__file__": str(path), "Path": Path})
    except Exception as error:
        TRACE.__set__(error, TRACE.__get__(error).tb_next)
        return capture(error, seconds=5)
    raise AssertionError("it did not fail")


def held(found):
    """Return file, line and value of the links into configuration files."""
    return [
        (Path(link.place.file).name, link.place.line, link.value.text)
        for link in found.links
        if link.how == "file" and not link.place.file.endswith(".py")
    ]


def first_cause(found):
    output = f'Traceback (most recent call last):\n  File "{found.place.file}", line {found.place.line}, in <module>\n'
    return diagnose(load(), Snapshot(output=f"{output}{found.exception}\n", accounts=(found,))).advice[0]


TAKE = "def take(at):\n    return [1, 2][at]\n"
YAML = "model:\n  size: 28\n  at: 7\ntrain:\n  size: 4\n"


@pytest.fixture(autouse=True)
def _own_command_line(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["train.py"])
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "read",
    [
        "take(cfg['model']['at'])",
        "take(**{'at': cfg['model']['at']})",
        "m = cfg['model']\ntake(m['at'])",
        "from types import SimpleNamespace\nm = SimpleNamespace(**cfg['model'])\ntake(m.at)",
    ],
)
def test_value_of_a_file_leads_to_its_line(tmp_path, read):
    """However the program asks for it."""
    text = f"import yaml\n{TAKE}cfg = yaml.safe_load(Path('run.yaml').read_text())\n{read}\n"
    assert held(account(tmp_path, text, run_yaml=YAML))[:1] == [("run.yaml", 3, "7")]


@pytest.mark.parametrize(
    ("name", "content", "reads", "line"),
    [
        (
            "run_json",
            '{\n  "name": "a",\n  "at": 7\n}\n',
            "import json\ncfg = json.loads(Path('run.json').read_text())\n",
            3,
        ),
        (
            "run_toml",
            "[model]\nat = 7\n",
            "import tomllib\ncfg = tomllib.loads(Path('run.toml').read_text())['model']\n",
            2,
        ),
    ],
)
def test_json_and_toml_are_read(tmp_path, name, content, reads, line):
    """Each with the line of the key."""
    found = account(tmp_path, f"{reads}{TAKE}take(cfg['at'])\n", **{name: content})
    assert held(found) == [(name.replace("_", "."), line, "7")]
    assert found.links[found.root].place.line == line


def test_own_class_of_fields_leads_to_the_file(tmp_path):
    """The fields that the file gives are not those of the class's defaults."""
    text = (
        "import dataclasses, yaml\n@dataclasses.dataclass\nclass C:\n    at: int\n    size: int = 3\n"
        f"{TAKE}c = C(**yaml.safe_load(Path('run.yaml').read_text())['model'])\ntake(c.at + c.size)\n"
    )
    assert held(account(tmp_path, text, run_yaml=YAML)) == [("run.yaml", 3, "7"), ("run.yaml", 2, "28")]


@pytest.mark.parametrize(
    "text",
    [
        f"import yaml\n{TAKE}cfg = yaml.safe_load(Path('run.yaml').read_text())\nat = 7\ntake(at)\n",
        f"import yaml\n{TAKE}yaml.safe_load(Path('run.yaml').read_text())\nmine = {{'at': 7}}\ntake(mine['at'])\n",
        f"{TAKE}name, mine = 'run.yaml', type('M', (), {{}})()\nmine.at = 7\ntake(mine.at)\n",
        (
            f"import yaml, argparse\n{TAKE}yaml.safe_load(Path('run.yaml').read_text())\n"
            "p = argparse.ArgumentParser()\np.add_argument('--at', default=7)\na = p.parse_args()\ntake(a.at)\n"
        ),
    ],
)
def test_value_of_the_program_itself_is_not_looked_for_in_files(tmp_path, text):
    """A literal, an option or an attribute decides, though a file has the same key and value."""
    assert not held(account(tmp_path, text, run_yaml=YAML))


def test_two_keys_of_one_name_are_told_apart_by_what_is_around_them(tmp_path):
    """By the names, or by the settings that hold the part; where that does not decide it either, nothing is said."""
    both = "model:\n  at: 7\nother:\n  at: 7\n"
    text = f"import yaml\n{TAKE}cfg = yaml.safe_load(Path('run.yaml').read_text())\n"
    assert held(account(tmp_path, f"{text}take(cfg['other']['at'])\n", run_yaml=both)) == [("run.yaml", 4, "7")]
    held_there = f"{text}m = next(iter(cfg.values()))\ntake(m['at'])\n"
    assert held(account(tmp_path, held_there, run_yaml=both)) == [("run.yaml", 2, "7")]
    copied = f"{text}m = dict(next(iter(cfg.values())))\ntake(m['at'])\n"
    assert not held(account(tmp_path, copied, run_yaml=both))


@pytest.mark.parametrize(
    ("content", "written"),
    [
        ("rate: 1e-3\n", "1.0e-3"),
        ("rate: 5e5\n", "5.0e+5"),
        ('rate: "0.25"\n', "0.25, without quotes"),
    ],
)
def test_text_that_looks_like_a_number_is_named(tmp_path, content, written):
    """With how the file has to write it."""
    text = (
        "import torch, yaml\ncfg = yaml.safe_load(Path('run.yaml').read_text())\n"
        "w = [torch.zeros(2, requires_grad=True)]\ntorch.optim.AdamW(w, lr=cfg['rate'])\n"
    )
    cause = first_cause(account(tmp_path, text, run_yaml=content))
    assert "a string, not a number" in cause.title
    assert cause.fix == f"Edit run.yaml:1: write {written}."


LOADER = (
    "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\nd = TensorDataset(torch.zeros({n}, 2))\n"
)


def test_counter_that_no_loop_raised_leads_to_the_loader_and_its_sizes(tmp_path):
    """Through a method that adds, a function that makes several loaders, and `enumerate`."""
    text = LOADER.format(n=50) + (
        "class Meter:\n    def __init__(self):\n        self.n = 0\n    def add(self, k):\n        self.n += k\n"
        "    def mean(self):\n        return 1.0 / self.n\n"
        "def loaders():\n    return DataLoader(d, 64,\n        drop_last=True), DataLoader(d, 8)\n"
        "one, other = loaders()\nm = Meter()\nfor i, (x,) in enumerate(one):\n    m.add(len(x))\nm.mean()\n"
    )
    found = account(tmp_path, text)
    assert found.links[found.root].place.line == 13
    cause = first_cause(found)
    assert "ran no round: 50 samples, batch_size=64 and drop_last=True give 0 batches" in cause.title
    assert cause.fix == "Edit train.py:13: use a batch size of at most 50, or drop_last=False."


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        ("DataLoader(d, 64, drop_last=True)", "50 samples, batch_size=64 and drop_last=True give 0 batches"),
        ("DataLoader(d, sampler=s)", "it has no samples on this rank"),
    ],
)
def test_a_first_batch_that_is_not_there_leads_to_the_sizes_of_its_loader(tmp_path, ask, words):
    """Taken at once, outside of a loop."""
    text = LOADER.format(n=50) + (
        "s = torch.utils.data.DistributedSampler(range(1), num_replicas=2, rank=0, drop_last=True)\n"
        f"loader = {ask}\nnext(iter(loader))\n"
    )
    assert f"`loader` gives nothing: {words}" in first_cause(account(tmp_path, text)).title


def test_list_that_no_loop_filled_leads_to_what_the_loop_goes_through(tmp_path):
    """The mean of no losses: the range was computed from a number that is too small."""
    text = "size = 3\nlosses = []\nfor n in range(size // 4):\n    losses.append(n)\nsum(losses) / len(losses)\n"
    cause = first_cause(account(tmp_path, text))
    assert "because the loop over `range(size // 4)` (train.py:3) ran no round" in cause.title
    assert "`size = 3` (train.py:1)" in cause.title


@pytest.mark.parametrize(
    "text",
    [
        "n = 0\nfor x in [1, 2]:\n    if x > 5:\n        n += 1\n1 / n\n",  # the loop ran
        "n = 0\nfor x in []:\n    n += 1\nn += 0\n1 / n\n",  # another line changes it
        "n = 0\nfor x in (y for y in ()):\n    n += 1\n1 / n\n",  # its length is not known
        "n = 0\n1 / n\n",
    ],
)
def test_no_loop_is_blamed_that_may_have_run(tmp_path, text):
    """Nor where nothing changes the value."""
    found = account(tmp_path, text)
    assert not any(link.value.name.startswith("len(") for link in found.links)
    assert "ran no round" not in first_cause(found).title
