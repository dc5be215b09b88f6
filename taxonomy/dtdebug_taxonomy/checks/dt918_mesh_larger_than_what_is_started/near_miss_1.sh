torchrun --nproc-per-node=$GPUS program_1.py
torchrun --nproc-per-node=4 program_2.py "$@"
