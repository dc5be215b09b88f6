from accelerate import Accelerator

accelerator = Accelerator()


def save(state, folder):
    before = accelerator.get_state_dict
    accelerator.get_state_dict = dict
    accelerator.save_model(state, folder)
    accelerator.get_state_dict = before


def main(state):
    if accelerator.is_main_process:
        save(state, "out")
