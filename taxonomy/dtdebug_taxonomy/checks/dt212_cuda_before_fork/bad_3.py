from multiprocessing import Process

import torch

torch.cuda.set_device(0)
torch.cuda.synchronize()


class Server:
    def run(self, index):
        self.model.cuda(index)

    def start(self):
        process = Process(target=self.run, args=(1,))  # dt: DT212
        process.start()
