torchrun --nproc-per-node=1 --nnodes=2 --node-rank=$NODE --master-addr=$HEAD program_3.py
