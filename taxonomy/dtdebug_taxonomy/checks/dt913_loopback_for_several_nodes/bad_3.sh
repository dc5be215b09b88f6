#!/bin/bash
# started by hand on both machines
export MASTER_ADDR=10.1.0.7
NODES=2
torchrun --nnodes $NODES --node_rank $1 --nproc_per_node 4 train.py  # dt: DT913
torchrun --nnodes $NODES --rdzv_backend c10d --rdzv_id 7 --nproc_per_node 4 train.py  # dt: DT913
