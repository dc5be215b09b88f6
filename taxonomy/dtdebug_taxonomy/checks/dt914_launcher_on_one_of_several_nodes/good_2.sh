#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus-per-node=8
torchrun --standalone --nproc-per-node=8 train.py
