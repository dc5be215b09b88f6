import horovod.torch as hvd
import torch

hvd.init()
model = torch.nn.Linear(2, 1)
opt = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
shards = [f"shard-{i}.pt" for i in range(11)]
my_shards = shards[: len(shards) // hvd.size() * hvd.size()][hvd.rank() :: hvd.size()]  # dt: DT507
for shard in my_shards:
    for x in torch.load(shard):
        model(x).sum().backward()
        opt.step()
