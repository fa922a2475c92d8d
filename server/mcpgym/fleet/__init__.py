"""Several servers as one: a pool of control planes, and a front before worker processes on one machine.

:mod:`~mcpgym.fleet.pool` opens episodes on the server that has the least to do; evaluators use it over servers
anywhere, and the front over its workers. :mod:`~mcpgym.fleet.front` is the one public port: it reads in each request's
path whose episode it is (:mod:`mcpgym.names`) and passes the bytes on (:mod:`~mcpgym.fleet.relay`).
:mod:`~mcpgym.fleet.workers` starts the processes, notices when one dies, and starts another.
"""
