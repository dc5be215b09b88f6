torchrun --nproc-per-node=8 program_1.py
torchrun --nproc-per-node=4 --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=$HEAD program_1.py
