"""Part of mcpgym."""
