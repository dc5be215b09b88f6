"""dtdebug for coding agents: its commands that only look, as tools of the Model Context Protocol."""
