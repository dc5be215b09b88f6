#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
srun --kill-on-bad-exit=1 python program_2.py --gpus 4  # dt: DT841
