from torch.distributed import is_initialized
from torch.distributed import get_rank
import torch
import torch.multiprocessing as mp
from torch.distributed import init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    def __init__(self, rank):
        self.model = DDP(build().to(rank), device_ids=[rank])
        self.best = 0.0

    def fit(self):
        for _ in range(5):
            accuracy = self.epoch()
            if accuracy > self.best:
                if not is_initialized() or get_rank() == 0:
                    torch.save(  # dt: DT602
                        self.model.module.state_dict(),
                        "best.pt",
                    )


def main(rank, world_size):
    init_process_group("gloo", rank=rank, world_size=world_size)
    trainer = Trainer(rank)
    trainer.fit()


if __name__ == "__main__":
    mp.spawn(main, args=(2,), nprocs=2)
