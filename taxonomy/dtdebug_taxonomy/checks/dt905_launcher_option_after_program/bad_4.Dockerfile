FROM pytorch/pytorch
CMD torchrun -m pkg.train --nnodes=2 --node_rank=1 --master_addr=node0 --lr 0.1  # dt: DT905
