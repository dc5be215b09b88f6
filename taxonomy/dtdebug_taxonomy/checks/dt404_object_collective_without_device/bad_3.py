import argparse

from torch.distributed import gather_object, get_rank, get_world_size, init_process_group


class Evaluation:
    def collect(self, result):
        out = [None] * get_world_size() if get_rank() == 0 else None
        gather_object(result, out, dst=0)  # dt: DT404
        return out


if __name__ == "__main__":
    args = argparse.ArgumentParser().parse_args()
    init_process_group("nccl", init_method="env://")
    Evaluation().collect({"accuracy": 1.0})
