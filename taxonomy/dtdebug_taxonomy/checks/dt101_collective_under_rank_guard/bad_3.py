from torch.distributed import all_gather_object, get_rank, get_world_size


class Trainer:
    def __init__(self):
        self.rank = get_rank()

    def log(self, metrics):
        if self.rank != 0:
            return None
        rows = [None] * get_world_size()
        all_gather_object(rows, metrics)  # dt: DT101
        return rows
