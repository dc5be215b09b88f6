"""A job on several hosts: those that have arrived, their files, and the rendezvous of their launchers."""
