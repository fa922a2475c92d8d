"""The command line: list, check, serve, play, evaluate, read traces, and the demonstration."""
