options = dict(find_unused_parameters=True)


def find(find_unused_parameters=True):
    return find_unused_parameters
