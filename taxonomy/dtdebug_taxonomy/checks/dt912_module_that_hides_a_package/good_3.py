import subprocess

subprocess.run(["python", "bench_horovod.py"])
