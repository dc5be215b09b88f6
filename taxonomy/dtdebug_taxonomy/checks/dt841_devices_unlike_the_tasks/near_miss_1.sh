#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
# the step has tasks of its own, torchrun starts the processes, and what comes by "$@" is not known
srun --ntasks=2 --ntasks-per-node=2 python program_1.py
torchrun --nproc_per_node=2 program_1.py
srun python program_2.py "$@"
