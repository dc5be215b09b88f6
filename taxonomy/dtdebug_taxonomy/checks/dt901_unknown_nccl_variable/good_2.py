import os

env = os.environ.copy()
env["NCCL_BUFFSIZE"] = "8388608"
env["NCCL_TOPO_FILE"] = "/etc/topo.xml"
os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "1"
os.environ["NCCL_HOME"] = "/usr/local/nccl"
