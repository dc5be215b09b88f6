import os
import subprocess
import sys

subprocess.run([sys.executable, "-m", "torch.distributed.run", "train.py", "--nproc_per_node=2"])  # dt: DT905
os.system("horovodrun -np 4 train.py")  # dt: DT905
