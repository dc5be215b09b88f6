import os

local_rank = int(os.environ.get("LOCAL_RANK", 0))
