"""vLLM's token-level endpoint: ids go in, ids and their log-probabilities come out; nothing is tokenised twice.

``server`` asks one server, ``engine`` puts it where a local model's own engine would be, ``policy`` is ``vllm:…``.
The server is started by whoever has the GPU; nothing of vLLM is imported here.
"""
