"""Implements `dtdebug doctor`: finds what would stop a job before it runs, on one host or on all of them."""
