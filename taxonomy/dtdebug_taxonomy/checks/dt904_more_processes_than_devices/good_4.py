import os
import subprocess
import sys


def on_one_device():
    env = dict(os.environ)
    env["CUDA_VISIBLE_DEVICES"] = "0"
    subprocess.run([sys.executable, "measure.py"], env=env, check=True)


def on_both_devices():
    subprocess.run(["torchrun", "--standalone", "--nproc_per_node=2", "measure.py"], check=True)
