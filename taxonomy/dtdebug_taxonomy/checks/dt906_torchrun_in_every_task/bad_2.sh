#!/bin/bash
#SBATCH -N 4
#SBATCH -n 16
export LAUNCHER="python -u -m torch.distributed.run --nproc_per_node 4 --nnodes 4"
srun --jobid $SLURM_JOB_ID bash -c "$LAUNCHER --node_rank \$SLURM_NODEID --master_addr $HEAD train.py"  # dt: DT906
