import torch.distributed as dist


def synchronise(rank: int, mode: str, loss):
    match rank:
        case 0:
            print("the first rank waits for the others")
            dist.barrier()
        case 1:
            dist.barrier()
        case _:
            dist.barrier()
    match mode:
        case "train":
            dist.all_reduce(loss)
        case _:
            dist.broadcast(loss, 0)
    match rank:
        case -1:
            return
        case _:
            dist.barrier()
