torchrun --nproc_per_node 8 train.py --epochs 3 --batch_size 4
torchrun --standalone --nproc_per_node=gpu -m pkg.train --master_port 3
