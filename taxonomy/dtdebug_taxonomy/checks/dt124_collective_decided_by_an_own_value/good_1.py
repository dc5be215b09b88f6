import os
import random
import signal
import socket

import torch
import torch.distributed as dist

stopping = False


def on_signal(number, frame):
    global stopping
    stopping = True


def sometimes(loss):
    random.seed(7)
    if random.random() < 0.1:
        dist.all_reduce(loss)


def first_machine():
    if socket.gethostname().endswith("-0"):
        print("first")
    dist.barrier()


def rounds(state):
    signal.signal(signal.SIGUSR1, on_signal)
    for _ in range(100):
        dist.all_reduce(state)
        flag = torch.tensor([float(stopping)])
        dist.all_reduce(flag)
        if flag.item():
            break


class Loop:
    def stopped(self):
        answer = [os.path.exists("STOP")]
        dist.broadcast_object_list(answer, src=0)
        return answer[0]

    def run(self, state):
        while True:
            dist.all_reduce(state)
            if self.stopped():
                return
