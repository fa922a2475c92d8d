"""The server's side of the sandbox: what a back-end must give, sessions over it, and the pool that keeps them ready."""
