#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks=4
srun -n 4 bash -c 'torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 --node_rank $SLURM_PROCID train.py'
