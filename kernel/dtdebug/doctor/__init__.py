"""`dtdebug doctor`: what would stop a job, found before it runs, on one host or on all of them."""
