"""`dtdebug fix` shows proven diffs of the user's own files, writes the safe ones, and names what has no diff."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess

import pytest

from dtdebug.cli import main
from dtdebug_taxonomy.checks import load
from dtdebug_taxonomy.checks.run.examine import examine
from dtdebug_taxonomy.checks.run.proving import prove_fixes
from dtdebug_taxonomy.source.kinds import parse_file
from dtdebug_taxonomy.source.python.code import Code

PROGRAM = """\
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=4, sampler=sampler)
for epoch in range(10):
    for batch in loader:
        print(batch)
"""


def _fix(capsys, *arguments):
    status = main.main(["fix", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_a_diff_of_the_users_file_is_shown_and_applies_with_patch(tmp_path, capsys, monkeypatch):
    """The file stays as it is; `patch` makes of it what --write makes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(PROGRAM)
    status, out, err = _fix(capsys, "train.py")
    assert status == 1
    assert (tmp_path / "train.py").read_text() == PROGRAM
    assert "--- a/train.py\n+++ b/train.py\n" in out
    assert "+    sampler.set_epoch(epoch)\n" in out
    assert "# DT502 train.py:4: Tell the sampler the epoch (safe)" in out
    if shutil.which("patch"):
        subprocess.run(["patch", "-p1", "--quiet"], input=out.encode(), check=True)
        patched = (tmp_path / "train.py").read_text()
        (tmp_path / "train.py").write_text(PROGRAM)
        _fix(capsys, "--write", "train.py")
        assert (tmp_path / "train.py").read_text() == patched
    assert "fixed by these diffs" in err


def test_write_writes_once_and_keeps_line_ends(tmp_path, capsys):
    """What is written has no fix left; the second time nothing is changed."""
    file = tmp_path / "train.py"
    file.write_bytes(PROGRAM.replace("\n", "\r\n").encode())
    _, out, _ = _fix(capsys, "--write", file)
    assert "(written)" in out
    assert "+    sampler.set_epoch(epoch)" in out
    once = file.read_bytes()
    assert b"    sampler.set_epoch(epoch)\r\n" in once
    assert b"\n" not in once.replace(b"\r\n", b"")
    assert _fix(capsys, "--write", file)[0] == 0
    assert file.read_bytes() == once


def test_a_finding_without_a_diff_has_its_lines(tmp_path, capsys):
    """What can't be edited with certainty is named, and no fragment is shown as a diff."""
    file = tmp_path / "train.py"
    file.write_text(
        "import torch.distributed as dist\n\nrank = dist.get_rank()\nif rank == 0:\n    x = 1\n"
        "    dist.barrier()\n    print(x)\nelse:\n    print(2)\n"
    )
    status, out, err = _fix(capsys, "--select", "DT101", file)
    assert status == 1
    assert out.startswith("# no diff: ")
    assert ":6: DT101" in out
    assert "---" not in out
    assert "1 without a diff" in err


def test_a_cell_of_a_notebook_has_a_diff_of_its_own(tmp_path, capsys):
    """The diff names the cell; the notebook itself is not written."""
    cells = ["import os\n", 'os.environ["NCCL_DEBGU"] = "INFO"\n']
    file = tmp_path / "demo.ipynb"
    file.write_text(json.dumps({"cells": [{"cell_type": "code", "source": c} for c in cells], "nbformat": 4}))
    before = file.read_text()
    _, out, _ = _fix(capsys, file)
    assert "demo.ipynb cell 2" in out
    assert '+os.environ["NCCL_DEBUG"] = "INFO"' in out
    _fix(capsys, "--write", "--all", file)
    assert file.read_text() == before


def test_a_fix_of_two_cells_is_one_fix_with_a_diff_of_each(tmp_path, capsys):
    """The optimizer is made above the cell that shards its parameters; the line is that of its cell."""
    cells = [
        "import torch\nfrom torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n",
        "model = torch.nn.Linear(8, 8)\noptimizer = torch.optim.Adam(model.parameters())\n",
        "model = FSDP(model)\nmodel(torch.ones(2, 8)).sum().backward()\noptimizer.step()\n",
    ]
    file = tmp_path / "demo.ipynb"
    file.write_text(json.dumps({"cells": [{"cell_type": "code", "source": c} for c in cells], "nbformat": 4}))
    _, out, err = _fix(capsys, file)
    assert out.startswith(f"# DT312 {file} cell 2:2: ")
    assert "-optimizer = torch.optim.Adam(model.parameters())\n--- a" in out
    assert "demo.ipynb cell 3\n@@ -1,3 +1,4 @@\n model = FSDP(model)\n+optimizer = " in out
    assert "1 fixed by these diffs (1 file)" in err


def test_what_every_rank_writes_gets_the_condition_that_the_function_has(tmp_path, capsys):
    """Where the group may be missing, the fix asks for it; a call into another module is followed as `check` does."""
    (tmp_path / "helpers.py").write_text("import torch.distributed as dist\n\n\ndef sync():\n    dist.barrier()\n")
    file = tmp_path / "train.py"
    file.write_text(
        "import torch\nimport torch.distributed as dist\nfrom helpers import sync\n"
        "from torch.nn.parallel import DistributedDataParallel as DDP\n\n\n"
        "def main(args, model):\n    if args.distributed:\n        dist.init_process_group('gloo')\n"
        "        model = DDP(model)\n    torch.save(\n        model.state_dict(),\n        'last.pt',\n    )\n"
        "    if dist.get_rank() == 0:\n        sync()\n\n\nif __name__ == '__main__':\n    main(None, None)\n"
    )
    _, out, _ = _fix(capsys, "--select", "DT602,DT101", file)
    assert "+    if not dist.is_initialized() or dist.get_rank() == 0:\n+        torch.save(\n" in out
    assert "sync(), which calls barrier() in helpers.py," in out


@pytest.mark.parametrize("group", ["dt2", "dt4", "dt5", "dt9"])
def test_what_is_proven_parses_and_silences_its_finding(group):
    """For the bad examples of the checks with fixes, one by one."""
    seen = 0
    for check in load().values():
        if not check.id.lower().startswith(group):
            continue
        for file in sorted(check.folder.glob("bad_*")):
            source = None if ".fixed." in file.name else parse_file(file.name, file.read_text(encoding="utf-8"))
            found = examine(source) if source is not None else []
            for hit in found:
                done = (
                    prove_fixes(source, found, [hit]) if source is not None and hit.check is check and hit.fix else None
                )
                if done is None or not done.hits:
                    continue
                seen += 1
                after = parse_file(file.name, done.text)
                assert after is not None
                left = [f for f in examine(after) if f.check is check]
                assert len(left) < len([f for f in found if f.check is check])
                if isinstance(after, Code):
                    ast.parse(done.text)
    assert seen >= 10


ACCELERATE = """import torch
from accelerate import Accelerator

accelerator = Accelerator()
model = accelerator.prepare(torch.nn.Linear(2, 2))
for batch in [torch.ones(2)]:
    model(batch).sum().backward()
torch.save(accelerator.unwrap_model(model).state_dict(), "model.pt")
"""
FSDP2 = """import torch
from torch.distributed.fsdp import fully_shard

model = torch.nn.Sequential(torch.nn.Linear(2, 2))
optimizer = torch.optim.AdamW(model.parameters())
fully_shard(model)
for layer in model:
    fully_shard(layer)
"""
DEEPSPEED = """import deepspeed
import torch.distributed as dist

engine, *_ = deepspeed.initialize(model=None, config={})
if dist.get_rank() == 0:
    engine.save_checkpoint("out")
"""
HOROVOD = """import horovod.torch as hvd
import torch

hvd.init()
torch.cuda.set_device(hvd.rank())
"""


@pytest.mark.parametrize(
    ("program", "added"),
    [
        (ACCELERATE, ["+    accelerator.backward(model(batch).sum())", "+if accelerator.is_main_process:"]),
        (FSDP2, ["+fully_shard(model)", "+optimizer = torch.optim.AdamW(model.parameters())"]),
        (DEEPSPEED, ['+engine.save_checkpoint("out")']),
        (HOROVOD, ["+torch.cuda.set_device(hvd.local_rank())"]),
    ],
    ids=["Accelerate", "FSDP2", "DeepSpeed", "Horovod"],
)
def test_a_diff_is_in_the_idiom_of_the_framework(program, added, tmp_path, capsys):
    (tmp_path / "train.py").write_text(program)

    main.main(["fix", str(tmp_path / "train.py")])

    lines = capsys.readouterr().out.splitlines()
    assert [line for line in added if line not in lines] == []
    assert not any(line.startswith("# no diff") for line in lines)


def _fixes(text, check):
    """The program with the proven fixes of one check, and the number of its findings."""
    code = Code(text, path="train.py")
    found = examine(code)
    wanted = [f for f in found if f.check.id == check]
    return prove_fixes(code, found, wanted).text, len(wanted)


GUARDED_LATER = """\
import os
import torch
import torch.distributed as dist
from tools import is_master, init_distributed


def main(args):
    dist.init_process_group("nccl")
    os.remove("log.txt")
    {between}
    if is_master(args):
        print("ready")


if __name__ == "__main__":
    main(parse_args())
"""


def test_a_condition_is_not_asked_before_what_it_reads_is_there():
    """`is_master(args)` may read `args.rank`, which a later line sets; asked again below it, it means the same."""
    early, found = _fixes(GUARDED_LATER.format(between="args.rank = dist.get_rank()"), "DT605")
    assert found
    assert "if is_master(args):\n        os.remove" not in early
    assert "os.remove" in early


def test_the_device_is_chosen_by_local_rank_only_where_a_launcher_sets_it():
    program = (
        "import os\nimport torch\nimport torch.distributed as dist\n\n"
        '{own}dist.init_process_group("nccl"{more})\nx = torch.ones(1).cuda()\ndist.all_reduce(x)\n'
    )
    launched, found = _fixes(program.format(own="", more=""), "DT201")
    assert found
    assert 'torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))' in launched
    for own, more in ((f'os.environ["{v}"] = "0"\n', "") for v in ("RANK", "MASTER_ADDR")):
        assert "LOCAL_RANK" not in _fixes(program.format(own=own, more=more), "DT201")[0]
    assert "LOCAL_RANK" not in _fixes(program.format(own="", more=", rank=0, world_size=1"), "DT201")[0]


def test_a_smaller_last_batch_is_kept_only_where_no_size_is_fixed():
    program = (
        "from torch.utils.data import DataLoader, DistributedSampler\n\nval_sampler = DistributedSampler(val_set)\n"
        "val_loader = DataLoader(val_set, batch_size=8, sampler=val_sampler, drop_last=True)\n{use}"
    )
    free, found = _fixes(program.format(use=""), "DT521")
    assert (1, True) == (found, "drop_last=False" in free)
    fixed = program.format(use="for batch in val_loader:\n    state = TensorDict(batch, batch_size=8)\n")
    assert "drop_last=True" in _fixes(fixed, "DT521")[0]


def test_both_sides_of_a_comparison_are_gathered_alike():
    """Half of it would compare tensors of different lengths."""
    program = (
        "from accelerate import Accelerator\n\naccelerator = Accelerator()\nfor batch in loader:\n"
        "    predictions = model(batch)\n"
        "    right = accelerator.gather(predictions) == accelerator.gather(batch)\n"
    )
    code = Code(program, path="train.py")
    hits = [f for f in examine(code) if f.check.id == "DT823"]
    assert hits
    for hit in hits:
        assert prove_fixes(code, examine(code), [hit]).text.count("gather_for_metrics(") == 2


def test_a_fix_that_needs_another_one_comes_with_it(tmp_path, capsys):
    """A sampler that is added has to be told the epoch, else its order is the same in each."""
    program = (
        "import torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel\n"
        'from torch.utils.data import DataLoader\n\ndist.init_process_group("gloo")\n'
        "model = DistributedDataParallel(torch.nn.Linear(2, 1))\n"
        "loader = DataLoader(data, batch_size=4, shuffle=True)\n"
        "for epoch in range(3):\n    for x in loader:\n        model(x).sum().backward()\n"
    )
    file = tmp_path / "train.py"
    file.write_text(program)
    assert "DistributedSampler" not in _fixes(program, "DT501")[0]
    out = _fix(capsys, "--select", "DT501,DT502", file)[1]
    assert "+loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))" in out
    assert "set_epoch(epoch)" in out
