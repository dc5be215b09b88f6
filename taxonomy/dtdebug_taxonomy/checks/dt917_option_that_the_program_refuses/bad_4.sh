python -m torch.distributed.launch --nproc_per_node=4 $(dirname "$0")/program_4.py  # dt: DT917
