from tqdm import tqdm

from mine import is_main_process


def train(loader):
    if is_main_process():
        loader = tqdm(loader)
    for batch in loader:
        step(batch)
    if is_main_process():
        print("done")


train([])
