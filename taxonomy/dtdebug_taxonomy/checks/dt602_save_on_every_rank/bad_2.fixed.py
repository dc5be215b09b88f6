import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def save_checkpoint(model, epoch, folder):
    state = {"epoch": epoch, "model": model.state_dict()}
    if not dist.is_initialized() or dist.get_rank() == 0:
        torch.save(state, os.path.join(folder, f"epoch{epoch}.pth"))  # dt: DT602


def main(args):
    dist.init_process_group(backend="nccl")
    model = DistributedDataParallel(build(args))
    for epoch in range(args.epochs):
        train(model)
        save_checkpoint(model, epoch, args.out)


if __name__ == "__main__":
    main(parser.parse_args())
