import multiprocessing

import torch


def read(path):
    print(open(path).read())


x = torch.zeros(1).cuda()
process = multiprocessing.Process(target=read, args=("a",))
process.start()
