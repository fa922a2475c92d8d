"""Connecting people's MCP clients: what stands in each one's own configuration file, and how it gets there."""
