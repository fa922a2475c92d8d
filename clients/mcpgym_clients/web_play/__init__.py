"""``mcpgym play --web``: a page on this machine to play, or to watch policies, with the environment's own app.

Read it in this order: :mod:`~.game` (what a page sees of a game), :mod:`~.episode_games` (games over MCP),
:mod:`~.sides` and :mod:`~.board_games` (games on the tree: against a policy, or between two), :mod:`~.site` (the page).
"""
