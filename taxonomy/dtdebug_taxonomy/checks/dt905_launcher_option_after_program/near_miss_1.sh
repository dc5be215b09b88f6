# the program starts its workers itself
python train_net.py --num-gpus 8 --nnodes 2
torchrun --nproc_per_node 4 tools/bench.py --nproc_per_node 4
