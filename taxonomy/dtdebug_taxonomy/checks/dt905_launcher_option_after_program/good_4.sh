#!/bin/bash
torchrun --nnodes=2 --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=node1:29500 \
  train_in_process.py --batch_size=8 --max_restarts=30 --soft_timeout_seconds=300
