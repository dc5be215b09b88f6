#!/bin/bash
export CUDA_VISIBLE_DEVICES=0,1  # dt: DT903
export TORCH_DISTRIBUTED_DEBUG=DETAIL  # dt: DT903
CUDA_VISIBLE_DEVICES=2 torchrun --nproc_per_node 1 train.py  # dt: DT903
