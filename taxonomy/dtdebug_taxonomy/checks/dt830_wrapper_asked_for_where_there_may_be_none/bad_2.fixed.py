from accelerate import Accelerator


def main(args):
    accelerator = Accelerator()
    unet, optimizer = accelerator.prepare(build(args), optimizer_)
    train(unet)
    accelerator.save(accelerator.unwrap_model(unet).state_dict(), args.output)  # dt: DT830
