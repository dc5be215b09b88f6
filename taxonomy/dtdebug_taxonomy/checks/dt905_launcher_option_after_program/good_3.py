import subprocess

subprocess.run(["torchrun", "--nproc_per_node", "2", "train.py", "--master_addr", "x"])
