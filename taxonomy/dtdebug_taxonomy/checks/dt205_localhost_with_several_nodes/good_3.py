import os

num_nodes = 1
node_rank = 0
os.environ["MASTER_ADDR"] = "127.0.0.1"
world_size = num_nodes * 8
rank = node_rank * 8
