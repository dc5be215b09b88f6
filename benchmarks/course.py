"""What following the collectives costs: processor seconds of paired runs, bytes on disk, a rehearsed rank.

    python benchmarks/course.py [PAIRS]

Runs real gloo jobs of two ranks, DDP and FSDP2, with and without recording, one after the other; needs torch.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PAIRS = 5
STEPS = 40
PROGRAM = f"""
import sys, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def main():
    dist.init_process_group("gloo")
    model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(12)])
    if sys.argv[1] == "fsdp2":
        from torch.distributed.fsdp import fully_shard
        for layer in model:
            fully_shard(layer)
        fully_shard(model)
    else:
        model = DDP(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range({STEPS} if dist.get_world_size() == 2 else 3):
        loss = model(torch.randn(256, 512)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()

main()
"""


def spent(command: list[str], place: Path) -> float:
    """Processor seconds of a command and all that it has started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {**os.environ, "DTDEBUG_STATE": str(place / "state"), "OMP_NUM_THREADS": "1"}
    subprocess.run(command, cwd=place, env=env, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Prints each figure."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    dtdebug = [sys.executable, "-m", "dtdebug"]
    with tempfile.TemporaryDirectory(prefix="dtdebug-course-") as name:
        place = Path(name)
        (place / "train.py").write_text(PROGRAM)
        launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py"]
        for kind in ("ddp", "fsdp2"):
            for what, options in (("fingerprints", ["--data", "0"]), ("and data, 64 MiB", [])):
                shares = []
                for number in range(pairs):
                    folder = f"{kind}-{len(options)}-{number}"
                    plain = spent([*dtdebug, "run", "--", *launch, kind], place)
                    with_it = spent([*dtdebug, "run", "--record", folder, *options, "--", *launch, kind], place)
                    shares.append(100 * (with_it / plain - 1))
                files = [path.stat().st_size for path in (place / folder).glob("rank-0.*")]
                told = json.loads((place / folder / "rank-0.0.cost.json").read_text())
                print(
                    f"{kind}, {what}: {told['collectives']} collectives a rank; extra processor time "
                    f"{statistics.median(shares):+.1f} % ({min(shares):+.1f} to {max(shares):+.1f}, {pairs} pairs); "
                    f"own {told['seconds']:.3f} s a rank; {sum(files) / 1024:.0f} KiB a rank"
                )
        for kind in ("ddp", "fsdp2"):
            rehearsal = [*dtdebug, "rehearse", "--world", "1024", "--ranks", "0,1,1023", "--", "train.py", kind]
            seconds = spent(rehearsal, place)
            said = subprocess.run(rehearsal, cwd=place, check=False, capture_output=True, text=True).stdout
            print(f"{kind}, 1,024 ranks rehearsed (0, 1, 1023): {seconds / 3:.1f} s of processor a rank; {said}")


if __name__ == "__main__":
    main()
