import subprocess

subprocess.run(["deepspeed", "--num_gpus", "2", "examples/accelerate.py"])  # dt: DT912
