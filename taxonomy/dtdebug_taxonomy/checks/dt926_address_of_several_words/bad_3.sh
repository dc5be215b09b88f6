#!/bin/bash
#SBATCH --nodes=2
export MASTER_ADDR=$(hostname -I)  # dt: DT926
export MASTER_PORT=29500
srun python -m torch.distributed.run --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint="$MASTER_ADDR:29500" train.py  # dt: DT926
