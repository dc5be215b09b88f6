torchrun --nnodes=2 --rdzv_backend=c10d --rdzv_endpoint=node0:29500 train.py
torchrun --nnodes=1 --rdzv_backend=c10d --rdzv_endpoint=localhost:0 train.py
torchrun --standalone --nproc_per_node 4 train.py
