NODE_RANK=0
ARGS="--nnodes 2 --node_rank $NODE_RANK --nproc_per_node 8 --master_addr $HEAD"
torchrun $ARGS train.py
