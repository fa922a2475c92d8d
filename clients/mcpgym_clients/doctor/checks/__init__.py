"""The checks, one subject a module: each takes the context and its outcome, and adds findings."""
