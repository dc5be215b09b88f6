from accelerate import Accelerator


def main(args):
    accelerator = Accelerator()
    unet, optimizer = accelerator.prepare(build(args), optimizer_)
    train(unet)
    accelerator.save(unet.module.state_dict(), args.output)  # dt: DT830
