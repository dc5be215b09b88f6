"""Language server of dtdebug."""
