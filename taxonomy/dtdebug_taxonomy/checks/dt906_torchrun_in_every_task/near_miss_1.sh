#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
# every task counts as a node
srun torchrun --nnodes $SLURM_NTASKS --nproc_per_node 1 --node_rank $SLURM_PROCID train.py
torchrun --standalone --nproc_per_node 4 evaluate.py
