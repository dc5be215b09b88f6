import subprocess
import sys

program = "import os; print('sees', os.environ.get('NCCL_DEBUG'))"
script = f'NCCL_DEBUG=INFO\n"{sys.executable}" -c "{program}"\n'
sys.exit(subprocess.run(["bash", "-c", script]).returncode)
