torchrun --nproc_per_node=gpu --nnodes=1 program_1.py  # dt: DT915
accelerate launch --num_processes 2 program_1.py  # dt: DT915
