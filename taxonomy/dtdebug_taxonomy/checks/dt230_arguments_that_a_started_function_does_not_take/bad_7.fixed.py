from accelerate import notebook_launcher


def training_loop(model, batch_size):
    print(model, batch_size)


model, batch_size = "net", 8
args = (model, batch_size)  # dt: DT230
notebook_launcher(training_loop, args, num_processes=2)
