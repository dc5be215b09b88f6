ssh host0 torchrun --nnodes=2 --node-rank=0 --nproc-per-node=8 --master-addr=10.0.0.1 train.py &
ssh host1 torchrun --nnodes=2 --node-rank=1 --nproc-per-node=8 --master-addr=10.0.0.1 train.py
