import multiprocessing
import subprocess

from torch.multiprocessing import get_context


def spawn(function, nprocs):
    print(function, nprocs)


spawn(print, nprocs=4)
queue = get_context("spawn").Queue()
process = multiprocessing.Process(target=print)
process.start()
subprocess.run(["true"], check=True)
