import os
import subprocess

os.environ["CUDA_VISIBLE_DEVICES"] = "0,1,2,3"
subprocess.run(["torchrun", "--nproc_per_node", "4", "train.py"], check=True)
