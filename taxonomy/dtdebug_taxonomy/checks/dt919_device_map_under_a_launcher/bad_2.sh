#!/bin/bash
GPUS_PER_NODE=2
DISTRIBUTED_ARGS="
    --nproc_per_node $GPUS_PER_NODE \
    --nnodes 1 \
    --master_port 6001
"
torchrun $DISTRIBUTED_ARGS program_2.py --bf16 True  # dt: DT919
