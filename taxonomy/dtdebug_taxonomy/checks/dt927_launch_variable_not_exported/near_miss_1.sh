NNODES=2
NPROC_PER_NODE=8
torchrun --nnodes $NNODES --nproc-per-node ${NPROC_PER_NODE} train.py
NODE_RANK=$NODE_RANK
python report.py --out r.txt
