import os
import torch
from torch import distributed


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group(backend="nccl")
    config = [{"lr": 0.1}] if distributed.get_rank() == 0 else [None]
    distributed.broadcast_object_list(config, src=0)  # dt: DT404
    model = torch.nn.Linear(4, 4).cuda()
    print(model, config)


if __name__ == "__main__":
    main()
