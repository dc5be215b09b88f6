"""Which program a script starts: beside the script or above it, after `cd`, and only where one file can be meant."""

import pytest

from dtdebug_taxonomy.source.python.project import Project
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.started_programs import started_programs


def _started(text, files, path="job/scripts/run.sh"):
    script = Script(text, path=path)
    script.project = Project(dict.fromkeys(files, "x = 1\n").get)
    return started_programs(script)


@pytest.mark.parametrize(
    ("text", "files", "found"),
    [
        ("python train.py", ["job/scripts/train.py"], "job/scripts/train.py"),
        ("bash -c 'torchrun --nproc-per-node 2 train.py'", ["job/train.py"], "job/train.py"),
        ("torchrun train.py", ["train.py"], "train.py"),
        ("cd ..\npython src/train.py", ["job/src/train.py"], "job/src/train.py"),
        ('cd "$(dirname "$0")"\npython train.py', ["job/scripts/train.py"], "job/scripts/train.py"),
        ('python "$(dirname "$0")/train.py"', ["job/scripts/train.py", "job/train.py"], "job/scripts/train.py"),
        ("torchrun $(dirname $0)/../train.py", ["job/train.py"], "job/train.py"),
        ("cd src && python train.py", ["job/src/train.py"], "job/src/train.py"),
        ("python -m tools.train", ["job/tools/train.py"], "job/tools/train.py"),
        ("torchrun -m tools.train", ["job/tools/train.py"], "job/tools/train.py"),
        ("P=train.py\nsrun --ntasks=4 python -u $P", ["job/train.py"], "job/train.py"),
        ("python train.py", ["job/scripts/train.py", "job/train.py"], None),
        ("python /opt/train.py", ["opt/train.py", "/opt/train.py"], None),
        ("python $TRAIN", ["job/train.py"], None),
        ("python train.py", [], None),
    ],
)
def test_the_program_is_the_one_file_that_the_command_can_mean(text, files, found):
    (start,) = _started(text, files)

    assert found == (start.code.path if start.code else None)


@pytest.mark.parametrize("text", ["$LAUNCH python train.py", "echo python train.py", "python -c 'print(1)'", "python"])
def test_what_may_start_something_else_is_left_alone(text):
    assert [] == _started(text, ["job/scripts/train.py"])


def test_the_words_are_told_apart():
    (start,) = _started("CUDA_VISIBLE_DEVICES=0 srun -n 2 python -u train.py --lr 0.1", [])

    assert (["srun", "-n", "2"], "train.py", ["--lr", "0.1"]) == (
        [w.text for w in start.before],
        start.program.text,
        [w.text for w in start.arguments],
    )
    assert start.runs_under("srun")
    assert start.launch is None
