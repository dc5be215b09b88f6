#!/bin/bash
# Write the first host's address and the number of this one.
MASTER_ADDR=<master_ip_address>
NNODES=8
NODE_RANK=<node_rank>

DISTRIBUTED_ARGS="
    --nproc_per_node 8 \
    --nnodes $NNODES \
    --node_rank $NODE_RANK \
    --master_addr $MASTER_ADDR \
    --master_port 6000
"

torchrun $DISTRIBUTED_ARGS train.py
