#!/bin/bash
# torchrun is started by the wrapper, on each of the nodes
#SBATCH --nodes=2
./spread.sh train.py --launcher torchrun
