import os
import subprocess


def launch(rank, port, devices):
    os.environ["MASTER_PORT"] = port
    os.environ["RANK"] = "%d" % rank
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(str(d) for d in devices)
    os.environ["JOB"] = "0" * 8
    first = subprocess.getoutput("scontrol show hostname | head -n1")
    os.environ["MASTER_ADDR"] = first
