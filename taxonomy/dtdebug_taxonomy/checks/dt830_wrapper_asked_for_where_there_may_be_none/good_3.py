from accelerate import Accelerator
from torch.nn.parallel import DistributedDataParallel as DDP

accelerator = Accelerator()
model = DDP(net)
state = model.module.state_dict()
