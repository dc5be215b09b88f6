"""Model Context Protocol server: dtdebug's read-only commands as tools for coding agents."""
