"""The names that ours have in MCP's ``_meta``: what server and client must spell alike. Imports nothing."""

DONE = "mcpgym/done"
"""In a result, true: the episode is over."""
IDEMPOTENCY = "mcpgym/idempotencyKey"
"""In a call: a text that makes the same call, sent again, one call."""
