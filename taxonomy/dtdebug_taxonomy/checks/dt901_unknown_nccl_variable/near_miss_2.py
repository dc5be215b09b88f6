import os
from datetime import timedelta

os.environ.setdefault("NCCL_TIMEOUT_MINUTES", "30")
timeout = timedelta(minutes=int(os.environ["NCCL_TIMEOUT_MINUTES"]))
