import os

local_rank = os.environ.get("LOCAL_RANK", -1)
if local_rank != -1:
    local_rank = int(local_rank)
distributed = os.environ.get("WORLD_SIZE", 1) != 1
if local_rank == 0:
    print(distributed)
