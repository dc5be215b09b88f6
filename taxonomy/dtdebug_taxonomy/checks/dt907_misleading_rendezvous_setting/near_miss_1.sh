echo localhost
ping -c 1 node0 || echo localhost is all there is
NAME=$(cat name.txt || echo default)
torchrun --rdzv_backend $BACKEND --node_rank $RANK train.py
