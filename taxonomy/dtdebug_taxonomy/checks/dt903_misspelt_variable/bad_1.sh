#!/bin/bash
export CUDA_VISIBLE_DEVICE=0,1  # dt: DT903
export TORCH_DISTRIBUTED_DETAIL=DEBUG  # dt: DT903
CUDA__VISIBLE_DEVICES=2 torchrun --nproc_per_node 1 train.py  # dt: DT903
