torchrun --nproc_per_node 2 deepspeed.py --config ds.json  # dt: DT912
