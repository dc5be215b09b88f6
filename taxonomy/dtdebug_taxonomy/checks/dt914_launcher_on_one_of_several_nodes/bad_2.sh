#!/bin/bash
#SBATCH -N 4
#SBATCH --gres=gpu:4
export OMP_NUM_THREADS=8
python -m torch.distributed.run --standalone --nproc-per-node=4 train.py --epochs 3  # dt: DT914
