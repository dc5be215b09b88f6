from accelerate import notebook_launcher


def training_loop(model, batch_size):
    print(model, batch_size)


model, batch_size = "net", 8
args = (batch_size, model)  # dt: DT230
notebook_launcher(training_loop, args, num_processes=2)
