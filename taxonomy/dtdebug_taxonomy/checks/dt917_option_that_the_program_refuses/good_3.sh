torchrun --nproc-per-node=2 program_3.py --anything 1
