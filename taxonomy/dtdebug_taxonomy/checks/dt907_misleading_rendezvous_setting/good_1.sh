HOST=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
torchrun --nnodes 2 --rdzv_backend c10d --rdzv_endpoint $HOST:29500 train.py
