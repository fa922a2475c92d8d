"""``mcpgym stress``: how much an MCP server carries, with the least that any HTTP server could cost measured beside it.

``load`` sends prepared bytes over kept connections and reads whole answers; ``bare`` is the limit; ``working`` has the
episodes or sessions that are played; ``running`` takes turns between them and reads CPU time from the system.
"""
