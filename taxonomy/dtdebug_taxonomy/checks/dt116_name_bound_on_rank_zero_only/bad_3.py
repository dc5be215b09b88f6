def prepare(accelerator, dataset, tokenize):
    if accelerator.is_main_process:
        data = dataset.map(tokenize)
        print(len(data))
    loader = accelerator.prepare(data)  # dt: DT116
    return loader
