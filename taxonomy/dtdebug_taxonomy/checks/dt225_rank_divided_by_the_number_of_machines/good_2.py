import os

node_rank = int(os.environ["GROUP_RANK"])
ranks_per_node = int(os.environ["WORLD_SIZE"]) // num_nodes
