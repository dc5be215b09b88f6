import os

nnodes = int(os.environ["NNODES"])
local_rank = int(os.environ["RANK"]) % nnodes  # dt: DT225
