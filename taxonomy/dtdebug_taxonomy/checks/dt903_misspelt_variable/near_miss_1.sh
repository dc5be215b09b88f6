# the script's own variables
MASTER_ADDRESS=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORTS=29500
torchrun --master_addr "$MASTER_ADDRESS" --master_port "$MASTER_PORTS" train.py
