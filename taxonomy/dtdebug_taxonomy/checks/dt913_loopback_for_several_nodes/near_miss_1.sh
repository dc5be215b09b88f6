NNODES=${NNODES:-1}
MASTER_ADDR=${MASTER_ADDR:-localhost}
torchrun --nnodes $NNODES --master_addr $MASTER_ADDR --nproc_per_node 8 train.py
torchrun --nnodes 2 $ARGS train.py
