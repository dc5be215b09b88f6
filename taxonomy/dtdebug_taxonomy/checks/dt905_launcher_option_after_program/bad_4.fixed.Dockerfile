FROM pytorch/pytorch
CMD torchrun --nnodes=2 --node_rank=1 --master_addr=node0 -m pkg.train --lr 0.1  # dt: DT905
