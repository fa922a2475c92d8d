"""Golden files: what every bundled environment does, frozen. ``python -m tests.golden`` writes them anew.

``*.jsonl`` are traces, which are replayed; ``playthroughs/*.txt`` are episodes as text, for people who review a change.
How to read this package: ``scripts`` has the turns that no good policy would write, ``rollouts`` makes the traces and
``playthroughs`` the texts.
"""
