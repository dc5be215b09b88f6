import horovod.torch as hvd
import torch
from accelerate import PartialState
from torch import distributed as dist

hvd.init()


def validate(correct, args):
    correct = hvd.allreduce(torch.tensor(correct), name="correct")  # dt: DT101
    dist.broadcast(correct, src=0)  # dt: DT101
    me = dist.get_rank()
    if me < dist.get_world_size() // 2:
        dist.barrier()  # dt: DT101
    else:
        print("the other half")
    return correct


def summary(loss):
    state = PartialState()
    total = loss if not state.is_main_process else dist.all_reduce(loss)  # dt: DT101
    not state.is_main_process or dist.barrier(group=None)  # dt: DT101
    return total
