torchrun --nproc-per-node=4 program_2.py
