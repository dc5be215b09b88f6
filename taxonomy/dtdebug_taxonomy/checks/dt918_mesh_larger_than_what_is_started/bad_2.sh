torchrun --nproc-per-node=4 --nnodes=1 program_2.py --tensor-parallel 4  # dt: DT918
