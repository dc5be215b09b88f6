import deepspeed

with deepspeed.zero.Init(remote_device="cpu"):
    net = Net()

net.head.weight.data.normal_(0, 0.02)  # dt: DT710
net.head.requires_grad_(False)
engine = deepspeed.initialize(model=net, config=config)[0]
