from accelerate import Accelerator
from torch.utils.data import DataLoader

accelerator = Accelerator(split_batches=True)
total_batch_size = 64
loader = accelerator.prepare(DataLoader([1, 2], batch_size=total_batch_size))
