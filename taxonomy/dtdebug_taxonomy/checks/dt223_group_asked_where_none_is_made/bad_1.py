import torch.distributed as dist


def main(args):
    if args.world_size > 1:
        dist.init_process_group("nccl")
    for step, batch in enumerate(loader):
        train_step(batch)
        if step % args.every == 0:
            dist.barrier()  # dt: DT223
