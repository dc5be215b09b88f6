from tqdm import tqdm


def main(loader):
    for batch in tqdm(loader):
        step(batch)


main([])
