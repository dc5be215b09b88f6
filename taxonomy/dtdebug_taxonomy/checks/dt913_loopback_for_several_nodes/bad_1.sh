torchrun --nnodes=2 --nproc_per_node=8 --rdzv-backend=c10d --rdzv-endpoint=localhost:29500 train.py  # dt: DT913
