"""``mcpgym top``: what a server is doing, in the terminal. Everything comes from its control plane's ``/metrics``."""
