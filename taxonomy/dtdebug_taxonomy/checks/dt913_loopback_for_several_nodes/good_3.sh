export MASTER_ADDR=localhost MASTER_PORT=29500
python train.py --nnodes 1
deepspeed --num_nodes 2 --hostfile hosts train.py
