"""A job as a whole: it is run and watched, its ends are read, one case is made of all."""
