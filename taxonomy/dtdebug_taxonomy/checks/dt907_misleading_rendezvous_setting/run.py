import pathlib
import subprocess
import sys

program = pathlib.Path("train.py")
program.write_text("import os\nprint('node rank', os.environ['GROUP_RANK'])\n")
launcher = [sys.executable, "-m", "torch.distributed.run", "--nnodes=1", "--rdzv-backend=c10d"]
options = ["--rdzv-endpoint=localhost:0", "--node-rank=3"]
sys.exit(subprocess.run([*launcher, *options, str(program)]).returncode)
