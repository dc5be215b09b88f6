import torch
import torch.multiprocessing as mp


def worker(rank, weights):
    torch.cuda.set_device(rank)
    print(weights)


def main():
    weights = torch.zeros(4, device="cuda:0")
    processes = [mp.Process(target=worker, args=(r, weights)) for r in range(2)]  # dt: DT212
    for process in processes:
        process.start()


if __name__ == "__main__":
    main()
