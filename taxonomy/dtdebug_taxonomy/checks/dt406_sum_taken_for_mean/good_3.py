import torch.distributed as dist


def summarize(loss_sum, count):
    dist.all_reduce(loss_sum)
    dist.all_reduce(count)
    print("loss", (loss_sum / count).item())


def total(num_correct):
    dist.all_reduce(num_correct)
    print(num_correct.item())
