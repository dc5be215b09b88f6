"""Starts a training: `python start.py` runs it, as rank and size of the environment say."""

import os
import subprocess
import sys


def train() -> None:
    rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    print(f"training as rank {rank} of {size}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["train"]:
        train()
    else:
        command = [sys.executable, __file__, "train"]
        sys.exit(subprocess.run(command).returncode)
