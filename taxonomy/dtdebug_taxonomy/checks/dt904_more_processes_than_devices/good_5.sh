#!/bin/bash
export CUDA_VISIBLE_DEVICES=0
if [[ $CUDA_VISIBLE_DEVICES != *","* ]]; then
  python train.py
else
  torchrun --nproc_per_node 2 train.py
fi
