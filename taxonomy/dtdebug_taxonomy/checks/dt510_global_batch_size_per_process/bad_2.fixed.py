import torch
from torch.distributed import get_world_size, init_process_group

TOTAL_BATCH_SIZE = 4096

init_process_group("gloo")
data = list(range(100))
loader = torch.utils.data.DataLoader(
    data,
    TOTAL_BATCH_SIZE // get_world_size(),  # dt: DT510
)
print(get_world_size())
