torchrun --nproc-per-node=2 program_1.py --batch 64 --lr=0.01
python -m torch.distributed.launch --use_env --nproc_per_node=4 program_1.py --lr 0.1
