import torch.distributed as dist


class Layer:
    def forward(self, x):
        dist.reduce(
            x,
            dst=dist.get_rank(self.sequence_parallel_group),  # dt: DT410
            group=self.sequence_parallel_group,
        )
        return x
