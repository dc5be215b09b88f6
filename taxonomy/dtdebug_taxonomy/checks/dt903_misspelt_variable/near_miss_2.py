import os

os.environ["CUDA_VISIBLE_DEVICES"] = "0"
threads = os.environ.get("OLMO_NUM_THREADS")  # its own
