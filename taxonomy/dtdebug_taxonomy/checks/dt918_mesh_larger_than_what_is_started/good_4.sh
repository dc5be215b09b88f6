torchrun --standalone --nproc-per-node=4 program_4.py
