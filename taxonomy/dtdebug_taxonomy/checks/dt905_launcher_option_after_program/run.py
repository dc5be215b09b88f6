import pathlib
import subprocess
import sys

program = pathlib.Path("train.py")
program.write_text("import argparse\nargparse.ArgumentParser().parse_args()\n")
launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
sys.exit(subprocess.run([*launcher, str(program), "--nproc_per_node", "2"]).returncode)
