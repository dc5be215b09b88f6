from torch.distributed.fsdp import fully_shard
from torch.optim import Adam

from nets import Transformer


def main(args):
    model = Transformer(args)
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    optimizer = Adam(  # dt: DT312
        [p for p in model.parameters() if p.requires_grad],
        lr=args.lr,
    )
    return model, optimizer
