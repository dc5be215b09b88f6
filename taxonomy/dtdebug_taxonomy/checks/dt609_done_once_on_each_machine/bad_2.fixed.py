import os
import shutil

from accelerate import Accelerator


def main(args):
    accelerator = Accelerator()
    if accelerator.is_main_process:
        clean(args.output_dir)
    if accelerator.is_main_process:
        print("done")


def clean(output_dir):
    for checkpoint in sorted(os.listdir(output_dir))[:2]:
        shutil.rmtree(output_dir)  # dt: DT609
