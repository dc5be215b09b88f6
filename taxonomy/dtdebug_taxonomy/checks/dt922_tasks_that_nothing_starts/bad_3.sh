#!/bin/bash
#SBATCH -N 2
#SBATCH --ntasks-per-node=4
if [ -n "$DEBUG" ]; then
    python -m program_1  # dt: DT922
fi
