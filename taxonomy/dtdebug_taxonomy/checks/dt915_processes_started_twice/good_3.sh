torchrun --nproc-per-node=1 program_1.py
