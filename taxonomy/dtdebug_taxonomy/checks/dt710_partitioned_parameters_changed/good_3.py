from deepspeed.zero import GatheredParameters


def freeze(module):
    with GatheredParameters(list(module.parameters()), 0):
        for p in module.parameters():
            p.data.zero_()
