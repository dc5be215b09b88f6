import os

os.environ["MASTER_PORT"] = 29500
