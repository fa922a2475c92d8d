"""What runs inside a sandbox, or at its boundary. Standard library only; it is never imported with its parents there.

``frames`` is the language between a server and an agent. The agent is two processes: ``init`` owns the session (it
answers frames, watches, kills, reads and writes files) and ``worker`` is the notebook that runs the code of a policy.
``start`` begins an agent in an interpreter of its own, ``archive`` makes it one file for containers. What an answer can
say is written down in ``frames``.
"""
