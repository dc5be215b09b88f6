from accelerate import Accelerator
from accelerate.utils import gather_object as collect


def checkpoint(accelerator: Accelerator, path):
    accelerator.save_state(path)


def main():
    acc = Accelerator()
    if acc.process_index == 0:
        checkpoint(acc, "out")  # dt: DT103
    if not acc.is_main_process:
        return
    else:
        print(collect(["done"]))  # dt: DT103

    @acc.on_main_process
    def finish():
        acc.save_model(model, "out")  # dt: DT103


main()
