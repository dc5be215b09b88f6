import os

rank = int(os.getenv("RANK", "-1"))
