import urllib.request


def fetch(rank, url, path):
    if rank == 0:
        urllib.request.urlretrieve(url, path)
        unpack(path)


def main(rank):
    fetch(rank, URL, "data.tar")
    synchronize()
    read("data.tar")
