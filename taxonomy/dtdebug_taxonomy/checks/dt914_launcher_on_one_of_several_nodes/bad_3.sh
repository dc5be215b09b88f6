#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
accelerate launch --num_machines $SLURM_NNODES --num_processes 16 --main_process_ip $MASTER_ADDR --main_process_port 29500 train.py  # dt: DT914
