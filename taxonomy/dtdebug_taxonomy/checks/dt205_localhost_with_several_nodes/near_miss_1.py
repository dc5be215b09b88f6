import os

graph_nodes = 100
edges = graph_nodes * 4
os.environ["MASTER_ADDR"] = "localhost"
if "MASTER_ADDR" not in os.environ:
    os.environ["MASTER_ADDR"] = "localhost"
total = sum(n * 2 for n in range(edges))
