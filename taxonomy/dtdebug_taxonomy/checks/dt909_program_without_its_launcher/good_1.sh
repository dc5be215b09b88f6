torchrun --standalone --nproc-per-node=2 program_1.py
