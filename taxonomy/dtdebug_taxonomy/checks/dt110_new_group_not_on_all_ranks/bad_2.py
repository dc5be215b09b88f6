import os

from torch.distributed import new_group

rank = int(os.environ["RANK"])
if rank in (0, 3):
    ranks = [0, 3]
else:
    ranks = [1, 2]
pair = new_group(ranks=ranks)  # dt: DT110
