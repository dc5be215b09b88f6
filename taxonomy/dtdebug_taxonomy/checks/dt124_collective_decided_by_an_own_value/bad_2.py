import os
import random
import signal
import socket

import torch.distributed as dist

stopping = False


def on_signal(number, frame):
    global stopping
    stopping = True


def sometimes(loss):
    if random.random() < 0.1:
        dist.all_reduce(loss)  # dt: DT124


def first_machine():
    host = socket.gethostname()
    if host.endswith("-0"):
        dist.barrier()  # dt: DT124


def rounds(state):
    signal.signal(signal.SIGUSR1, on_signal)
    for _ in range(100):
        dist.all_reduce(state)
        if stopping:  # dt: DT124
            break


class Loop:
    def stopped(self):
        return os.path.exists("STOP")

    def run(self, state):
        while True:
            dist.all_reduce(state)
            if self.stopped():  # dt: DT124
                return


sometimes(None)
