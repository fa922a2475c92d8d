"""Agent products as policies: with ``mcpgym eval ENV --agent claude-code`` a product plays whole episodes by itself.

``contract`` says what an agent is to us; there is one file for each product. ``playing`` is the policy: it starts the
product for an episode (``workplace``, ``process``, ``keeper``), and makes a trace of the server's log of calls and of
what the product says of itself (``transcript``).
"""
