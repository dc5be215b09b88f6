import logging
import os


def start(dist, folder, rank):
    if not os.path.isdir(folder) and dist.is_root():
        os.makedirs(folder, exist_ok=True)  # dt: DT115
    logging.getLogger().addHandler(logging.FileHandler(f"{folder}/{rank}.log"))
