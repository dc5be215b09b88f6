#!/bin/bash
pip install numpy apex tqdm  # dt: DT911
pip3 install --no-cache-dir horovod[pytorch]  # dt: DT911
pip3 install torch torchvision
