import os

size = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
table = {"RANK": 3}
rank = table.get("RANK", 1)
node = os.environ.get("NODE_RANK", "unknown")
