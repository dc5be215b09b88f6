import pathlib
import subprocess
import sys

folder = pathlib.Path("work")
folder.mkdir()
program = folder / "numpy.py"
program.write_text("import numpy\nprint(numpy.zeros(1))\n")
sys.exit(subprocess.run([sys.executable, str(program)]).returncode)
