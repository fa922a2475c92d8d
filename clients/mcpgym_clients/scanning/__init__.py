"""The leak scanner: what a player is not to know is made a canary, and looked for in all that its channel carries.

Read ``scan`` first, which is the whole course of it; then ``planting`` (where canaries go), ``wires`` and ``playing``
(what is asked), ``stage`` (two plays compared), ``attacks`` (what is tried), and ``search`` with ``forms`` (how a
canary is known again).
"""
