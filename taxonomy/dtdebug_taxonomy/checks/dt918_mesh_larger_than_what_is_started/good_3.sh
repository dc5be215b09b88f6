torchrun --nproc-per-node=4 program_3.py
