import os
import subprocess

import torch

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
child = {**os.environ, "CUDA_VISIBLE_DEVICES": "1"}
child["CUDA_VISIBLE_DEVICES"] = "0"
subprocess.run(["python", "-c", "import torch"], env=child, check=True)
