import deepspeed
import torch.distributed as dist

engine, _, _, _ = deepspeed.initialize(model=net, config="ds_config.json")
engine.save_checkpoint("out")
if dist.get_rank() == 0:
    print("saved")
