"""Code that runs inside the processes of a run: uses only the standard library and does not import torch itself."""
