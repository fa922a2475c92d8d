"""Environments in virtual environments of their own, which ``mcpgym env add`` made: played from here as if installed.

Read it in this order: ``records`` (what was added, and where), ``wire`` (what goes between the two processes), ``host``
and ``child`` (the process in the virtual environment, which holds the environments and their states), ``process``
(that process as it is seen from here), ``home`` (started when needed, again when it has ended), ``config``, ``tasks``,
``tools`` and ``environment`` (an environment whose every method asks there).

What an episode is stays here: its token, its turns, its log, its time limits. There is only what its author wrote.
"""
