import subprocess

command = [
    "torchrun",
    "--nnodes=2",
    "--rdzv_backend", "c10d",
    "--rdzv_endpoint", "node0:29400",
    "--node_rank", "1",  # dt: DT907
    "train.py",
]
subprocess.run(command, check=True)
