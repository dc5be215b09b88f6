torchrun train.py --nproc_per_node 8 --epochs 3  # dt: DT905
