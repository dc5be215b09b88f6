"""`dtdebug check`: runs the checks over files, folders and the cells of this notebook."""
