"""The logs of a job, however many: which rank failed first, who followed, who fell silent, and the machine below."""
