"""``llama:MODEL``: a GGUF file played by llama.cpp on this machine, in a process of its own, without a network.

``files`` finds the file, ``process`` keeps the server, ``child`` is what runs in it, and ``policy`` is what a rollout
sees. The server is llama.cpp's own, out of the package ``xllamacpp`` (extra ``llama``).
"""
