"""One process reads all of it."""

import webdataset as wds

dataset = wds.WebDataset(urls).decode("pil")
for sample in dataset:
    convert(sample)
