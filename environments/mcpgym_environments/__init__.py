"""The environments that come with mcpgym, and what they share. None knows a transport, a policy or a client."""
