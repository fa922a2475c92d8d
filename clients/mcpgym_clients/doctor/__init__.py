"""``mcpgym doctor``: what is well and what is not with any MCP server, over HTTP or a stdio command.

``examination`` has the order of the checks; each check is a module of ``checks`` and says what it found with evidence
and advice (``findings``). ``wire``, ``http_wire`` and ``stdio_wire`` speak MCP without an SDK in between, because a
check has to see, and be able to spoil, every byte. ``subjects`` says what is examined and ``calls`` what of it may be
called.
"""
