pip install torch
HOROVOD_WITH_PYTORCH=1 pip install --no-cache-dir horovod[pytorch]
pip install -v --no-build-isolation git+https://github.com/NVIDIA/apex.git
