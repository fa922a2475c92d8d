"""Environments from elsewhere, and ours for others.

``mcpgym env add``: ``adding`` leads through it; ``specs`` (what may be added), ``installers`` (uv or pip), ``looking``
(what is in it, and whether that may be added), ``places`` (folders and locks), ``removing``, ``showing``.
``mcpgym env push``: ``pushing`` leads through it; ``packages`` (what is uploaded), ``hub_page`` and ``hubs``.
"""
