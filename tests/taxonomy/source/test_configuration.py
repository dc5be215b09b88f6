"""Values that a program takes from a file, a dict or a module of its project are known; what may change is not."""

import ast

import pytest

from dtdebug_taxonomy.checks.run.examine import examine
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.config_values import configured_value
from dtdebug_taxonomy.source.python.project import Project
from dtdebug_taxonomy.source.shell.script import Script

YAML = "train:\n  shuffle: true\n  backend: nccl\n  steps: ${STEPS}\n"
FILES = {
    "config.yaml": YAML,
    "conf/c.json": '{"train": {"shuffle": false}}',
    "settings.py": 'CONFIG = {"inner": {"devices": 4}}\nBATCH = 8\nBATCH_TWICE = 1\nBATCH_TWICE = 2\n',
    "tools.py": "import yaml\n\n\ndef load(path):\n    with open(path) as f:\n        return yaml.safe_load(f)\n",
    "bomb.yaml": "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
    + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(9)),
    "long.yaml": "train: {shuffle: true}\n" + "# x\n" * 40_000,
}
OPENED = "import yaml\nwith open('config.yaml') as f:\n    cfg = yaml.safe_load(f)\n"


def _code(text, files=FILES, path="train.py"):
    code = Code(text, path=path)
    code.project = Project(files.get)
    return code


def _last(text, **kw):
    """What is known of the value of the last assignment."""
    code = _code(text, **kw)
    assign = code.nodes(ast.Assign)[-1]
    found = configured_value(code, assign.value)
    return (found.value, found.file, found.line, found.option) if found else None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (OPENED + "x = cfg['train']['shuffle']", (True, "config.yaml", 2, "")),
        (OPENED + "part = cfg['train']\nx = part.get('backend', 'gloo')", ("nccl", "config.yaml", 3, "")),
        ("import json\nc = json.load(open('conf/c.json'))\nx = c['train']['shuffle']", (False, "c.json", 1, "")),
        (
            "from omegaconf import OmegaConf\nx = OmegaConf.load('config.yaml').train.backend",
            ("nccl", "config.yaml", 3, ""),
        ),
        (
            (
                "import os, yaml\np = os.path.join(os.path.dirname(__file__), 'config.yaml')\n"
                "x = yaml.safe_load(open(p))['train']['backend']"
            ),
            ("nccl", "config.yaml", 3, ""),
        ),
        ("from tools import load\nx = load('config.yaml')['train']['backend']", ("nccl", "config.yaml", 3, "")),
        ("from settings import CONFIG\nx = CONFIG['inner']['devices']", (4, "settings.py", 1, "")),
        ("import settings\nx = settings.BATCH", (8, "settings.py", 2, "")),
        ("C = {'a': {'b': 'gloo'}}\nx = C['a']['b']", ("gloo", "", 1, "")),
        (
            (
                "import argparse, yaml\np = argparse.ArgumentParser()\n"
                "p.add_argument('--config', default='config.yaml')\nargs = p.parse_args()\n"
                "cfg = yaml.safe_load(open(args.config))\nx = cfg['train']['backend']"
            ),
            ("nccl", "config.yaml", 3, "--config"),
        ),
    ],
)
def test_a_value_is_known_with_its_place(text, expected):
    assert expected == _last(text)


@pytest.mark.parametrize(
    "text",
    [
        OPENED + "cfg['train']['shuffle'] = bool(args.shuffle)\nx = cfg['train']['shuffle']",
        OPENED + "cfg.update(vars(args))\nx = cfg['train']['shuffle']",
        OPENED + "for k, v in more.items():\n    cfg[k] = v\nx = cfg['train']['shuffle']",
        OPENED + "def put(c):\n    c[key] = 1\nput(cfg)\nx = cfg['train']['shuffle']",
        OPENED + "merge_options(cfg)\nx = cfg['train']['shuffle']",
        OPENED + "x = cfg['train']['steps']",
        OPENED + "x = cfg['train']['nothing']",
        OPENED + "x = cfg[key]['shuffle']",
        "import yaml\ncfg = yaml.safe_load(open(sys.argv[1]))\nx = cfg['train']['shuffle']",
        "import yaml\ncfg = yaml.safe_load(open('/etc/config.yaml'))\nx = cfg['train']['shuffle']",
        "import settings\nx = settings.BATCH_TWICE",
        "C = {**more, 'a': 1}\nx = C['a']",
        "import yaml\nx = yaml.safe_load(open('bomb.yaml'))['j']",
        "import yaml\nx = yaml.safe_load(open('long.yaml'))['train']['shuffle']",
        "x = x['a']",
    ],
)
def test_what_may_be_changed_or_can_not_be_told_is_not_known(text):
    assert _last(text) is None


def test_a_file_that_two_folders_have_is_not_chosen():
    files = {"config.yaml": YAML, "run/config.yaml": YAML}

    assert _last(OPENED + "x = cfg['train']['shuffle']", files=files, path="run/train.py") is None


LOADER = """
import torch
from torch.utils.data import DataLoader, DistributedSampler

sampler = DistributedSampler(data)
loader = DataLoader(data, sampler=sampler, shuffle=cfg["train"]["shuffle"])
"""


def test_a_finding_says_where_its_value_stands():
    (found,) = examine(_code(OPENED + LOADER), Settings(select=("DT503",)))

    assert found.message.endswith('cfg["train"]["shuffle"] is True in config.yaml line 2.')
    assert found.severity == "warning"


def test_a_value_that_an_option_may_change_makes_a_hint_that_says_so():
    opened = OPENED.replace("'config.yaml'", "args.config").replace(
        "with",
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--config', default='config.yaml')\n"
        "args = p.parse_args()\nwith",
    )

    (found,) = examine(_code(opened + LOADER), Settings(select=("DT503",)))

    assert found.severity == "hint"
    assert found.message.endswith("in config.yaml line 2, the file that --config names unless it is given.")


def test_what_is_read_counts_as_consulted():
    code = _code(OPENED + LOADER)

    examine(code, Settings(select=("DT503",)))

    assert "config.yaml" in code.project.consulted


HYDRA = {
    "src/train.py": "import hydra\n\n\n@hydra.main(config_path='../conf', config_name='train')\ndef main(cfg):\n"
    "    hydra.utils.instantiate(cfg.trainer).fit(model)\n\n\nmain()\n",
    "conf/train.yaml": "defaults:\n  - _self_\n  - trainer: default\n  - experiment: null\n",
    "conf/trainer/default.yaml": "_target_: lightning.pytorch.Trainer\ndevices: 1\n",
    "conf/trainer/ddp.yaml": "defaults: [default]\nstrategy: ddp\ndevices: 4\nnum_nodes: 1\n",
}


@pytest.mark.parametrize(
    ("tasks", "arguments", "expected"),
    [
        (2, "trainer=ddp", "(in ddp.yaml line 3) has devices=4"),
        (4, "trainer=ddp", ""),
        (4, "trainer=ddp trainer.devices=2", "(here) has devices=2"),
        (2, "", "(in default.yaml line 2) has devices=1: each task trains for itself."),
        (2, "trainer=ddp experiment=big", ""),
        (2, 'trainer=ddp "$@"', ""),
        (2, "trainer=other", ""),
        (2, "-m trainer=ddp", ""),
    ],
)
def test_what_hydra_composes_for_a_command_is_compared_with_the_tasks(tasks, arguments, expected):
    text = f"#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node={tasks}\nsrun python src/train.py {arguments}\n"
    script = Script(text, path="job.sh")
    script.project = Project(HYDRA.get)

    found = examine(script, Settings(select=("DT841",)))

    assert len(found) == bool(expected)
    assert all(expected in f.message for f in found)
