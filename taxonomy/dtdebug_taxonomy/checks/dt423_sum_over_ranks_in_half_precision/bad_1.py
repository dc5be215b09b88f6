import torch.distributed as dist


def exchange(weight):
    gradient = weight.grad.half()
    dist.all_reduce(gradient)  # dt: DT423
    weight.grad = gradient.float() / dist.get_world_size()
