"""`dtdebug rehearse --memory` forecasts the peak memory of each rank without running on real data."""

import json
import os
import subprocess
import sys

import pytest

from dtdebug.cli import main
from dtdebug.experiments.memory import forecast

PROGRAM = """
import os, torch, torch.nn as nn, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.distributed.fsdp import fully_shard
dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024))
model.to(torch.device("cuda", int(os.environ["LOCAL_RANK"])))
if "SHARD" in os.environ:
    fully_shard(model)
else:
    model = DDP(model, device_ids=[int(os.environ["LOCAL_RANK"])])
optimizer = torch.optim.Adam(model.parameters())
for step in range(1000):
    loss = model(torch.randn(64, 1024, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step == 0:
        print("loss", loss.item())
        torch.save(model.state_dict(), "model.pt")
"""
WEIGHTS = 4 * (1024 * 4096 + 4096 + 4096 * 1024 + 1024)


def rehearse(folder, *words, **env):
    """Run the command on the program; return its JSON."""
    (folder / "train.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "dtdebug", "rehearse", "--memory", "--format", "json", *words, "--", "train.py"],
        cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    assert [p.name for p in folder.iterdir()] == ["train.py"]  # nothing was saved
    return json.loads(done.stdout), done.returncode


@pytest.mark.ranks
def test_the_peak_is_forecast_by_class_and_said_to_fit_or_not(tmp_path):
    """Replicas hold all weights, gradients and moments; the exit status says whether they fit."""
    found, status = rehearse(tmp_path, "--world", "8", "--ranks", "0", "--gpu", "1100MiB")
    peak = found["peaks"]["0"]
    assert (status, found["fits"]) == (1, False)
    assert peak["classes"]["parameters"] == pytest.approx(WEIGHTS, rel=0.01)
    assert peak["classes"]["optimizer"] == pytest.approx(2 * WEIGHTS, rel=0.01)
    assert peak["batch"] == 64
    assert "It does not fit in 1.1 GiB" in found["answer"]["headline"]
    assert any("fully_shard" in s["what"] for s in found["savings"])


GROWS = """
import torch
from collections import deque
class Log:
    def __init__(self):
        self.rows = KIND
log, cache = Log(), {}
model = torch.nn.Linear(512, 512)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    if not cache:
        cache["mask"] = torch.ones(512, 512)
    out = model(torch.randn(2048, 512) @ cache["mask"])
    loss = out.square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    log.rows.append(out)
"""


@pytest.mark.ranks
@pytest.mark.parametrize(("kind", "grows"), [("[]", True), ("deque(maxlen=1)", False)])
def test_what_each_step_leaves_behind_is_named(tmp_path, kind, grows):
    """What is made once, and what only the step before has left, does not grow."""
    (tmp_path / "train.py").write_text(GROWS.replace("KIND", kind))
    words = ["rehearse", "--memory", "--world", "1", "--format", "json", "--", "train.py"]
    done = subprocess.run(
        [sys.executable, "-m", "dtdebug", *words], cwd=tmp_path, capture_output=True, timeout=100, check=False
    )
    found = json.loads(done.stdout)
    assert done.returncode == int(grows)
    assert found["answer"]["headline"].startswith("Each step keeps 4 MiB more;") is grows
    assert [row[0] for row in found["peaks"]["0"]["kept"]] == [2048 * 512 * 4] * grows
    assert ("`log.rows` holds" in found["answer"].get("fix", {}).get("text", "")) is grows


@pytest.mark.ranks
def test_shards_are_as_small_as_the_world_is_large(tmp_path):
    """What is sharded is a share of it, whatever this host has."""
    found, status = rehearse(tmp_path, "--world", "16", "--ranks", "0", SHARD="1")
    peak = found["peaks"]["0"]
    assert status == 0
    assert peak["classes"]["parameters"] == pytest.approx(WEIGHTS / 16, rel=0.02)
    assert peak["classes"]["optimizer"] == pytest.approx(2 * WEIGHTS / 16, rel=0.02)
    assert peak["sharded"]


@pytest.mark.parametrize(("text", "size"), [("80GiB", 80 << 30), ("16 GB", 16 * 10**9), ("NVIDIA T4", 17008070492)])
def test_a_gpu_is_a_size_or_a_name(text, size):
    """Sizes are decimal or binary; names have the size that their makers say."""
    assert forecast.gpu_bytes(text) == size


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gpu", "big"], "rehearse --gpu big: a size such as 80GiB, or one of a10"),
        ([], "rehearse: no.py: no such file"),
    ],
)
def test_wrong_usage_is_one_line(capsys, words, said):
    """What can't be meant is one line, and exit status 2."""
    assert main.main(["rehearse", "--memory", "--world", "8", *words, "--", "no.py"]) == 2
    assert said in capsys.readouterr().err
