import os

rank = int(os.environ["RANK"])
size = int(os.environ.get("WORLD_SIZE", 1))
