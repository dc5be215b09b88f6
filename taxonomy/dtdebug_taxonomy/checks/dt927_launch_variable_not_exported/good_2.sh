NPROC_PER_NODE=8 \
NNODES=2 \
swift sft --model base --dataset notes
