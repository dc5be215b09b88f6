import os

port = find_port()
os.environ["MASTER_PORT"] = str(port)
os.environ["TORCH_DISTRIBUTED_DEBUG"] = "INFO"
os.environ["TORCH_NCCL_BLOCKING_WAIT"] = "true"
os.environ["NCCL_SOCKET_IFNAME"] = "no0"
