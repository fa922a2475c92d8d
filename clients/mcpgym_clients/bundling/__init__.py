"""``mcpgym bundle``: an environment as one file, an MCP Bundle, that desktop clients install with a double click."""
