torchrun --nnodes=1 --node-rank=0 --nproc-per-node=8 train.py
