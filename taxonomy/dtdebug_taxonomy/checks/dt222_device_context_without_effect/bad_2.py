import torch


def init_engine(parallel_config):
    torch.cuda.device(parallel_config.rank)  # dt: DT222
    return build(parallel_config)
