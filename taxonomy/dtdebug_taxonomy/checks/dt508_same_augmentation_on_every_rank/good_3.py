import numpy as np


class Noisy:
    def __getitem__(self, i):
        return np.random.randn(3) + i


np.random.seed(0)
print(Noisy()[0])
