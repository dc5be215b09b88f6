import threading

import torch

LIMIT = 3
slots = [None] * LIMIT


def fill(number):
    slots[number] = torch.full((2,), float(number))


def start(count):
    threads = [threading.Thread(target=fill, args=(n,)) for n in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return slots


workers = LIMIT + 1
filled = start(workers)
print(torch.stack([s for s in filled]).sum())
raise SystemExit(0 if len(filled) == workers else "not all slots are filled")
