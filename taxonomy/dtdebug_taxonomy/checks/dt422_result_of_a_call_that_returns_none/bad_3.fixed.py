import torch.distributed as dist


def first_of_all(predictions):
    gathered = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, predictions)
    everything = gathered  # dt: DT422
    return everything[0]
