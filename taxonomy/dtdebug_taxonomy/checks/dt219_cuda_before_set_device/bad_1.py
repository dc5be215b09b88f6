import torch
import torch.distributed as dist


def main(model, local_rank):
    model = model.cuda()  # dt: DT219
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    return model
