import os
import subprocess
import sys

subprocess.run([sys.executable, "-m", "torch.distributed.run", "train.py", "--nproc_per_node=2"])  # dt: DT905
os.system("horovodrun train.py -np 4")  # dt: DT905
