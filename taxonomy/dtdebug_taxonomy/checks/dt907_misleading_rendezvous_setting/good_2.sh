torchrun --nnodes 2 --node_rank $RANK --master_addr $HOST --master_port 29500 train.py
torchrun --nnodes 2 --node_rank $RANK --rdzv_backend static --rdzv_endpoint $HOST:29500 train.py
