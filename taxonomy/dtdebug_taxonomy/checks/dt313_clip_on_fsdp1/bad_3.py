from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel


def build(args, net):
    if args.shard:
        net = FullyShardedDataParallel(net)
    return net


def main(args, net, batches):
    net = build(args, net)
    params = [p for p in net.parameters() if p.requires_grad]
    for batch in batches:
        net(batch).backward()
        nn.utils.clip_grad_norm_(params, args.clip, error_if_nonfinite=True)  # dt: DT313
