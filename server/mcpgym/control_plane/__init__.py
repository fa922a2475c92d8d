"""The control plane over HTTP: its listener, its secret, its application and how errors travel.

The interface itself is :mod:`mcpgym.control`; the client is :mod:`mcpgym.control_client`; both listeners are run by
:mod:`mcpgym.serving`.
"""
