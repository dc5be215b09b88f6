python -m torch.distributed.launch --nproc_per_node=8 --nnodes 4 --node_rank=1 --master_addr=$HEAD train.py  # dt: DT923
