"""Workers share a file that was opened before they began, and read at places that others have moved."""

import struct
import tempfile
import threading

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, file):
        self.file = file
        self.lock = threading.Lock()
        self.home = threading.get_native_id()

    def __len__(self):
        return 40

    def __getitem__(self, i):
        if threading.get_native_id() != self.home:
            raise RuntimeError("the index of rows was built in another process")
        self.file.seek(8 * i)
        return torch.tensor(struct.unpack("d", self.file.read(8))[0])


def main():
    dist.init_process_group("gloo")
    with tempfile.TemporaryFile() as file:
        file.write(b"".join(struct.pack("d", i / 7) for i in range(40)))
        loader = DataLoader(Rows(file), batch_size=5, num_workers=2)
        total = torch.zeros(())
        for x in loader:
            total += x.sum()
        dist.all_reduce(total)
    dist.destroy_process_group()


main()
