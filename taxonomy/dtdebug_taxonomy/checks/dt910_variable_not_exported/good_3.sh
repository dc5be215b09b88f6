set -a
NCCL_DEBUG=INFO
set +a
torchrun train.py
