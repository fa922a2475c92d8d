"""Local models: a Hugging Face directory played by an engine of our own, token for token.

``directory`` reads the files, ``chat`` turns messages into ids and ids into messages, ``llama`` (NumPy, no torch) and
``hugging_face`` (any causal model of transformers, CPU or GPU) compute, ``engine`` decodes hundreds of conversations
together, each with a cache of its own (``rows``, ``turns`` and ``openings`` are its parts), ``sampling`` draws, and
``policy`` is what a rollout sees.

Small models are fastest on one thread, and several processes share a machine best so. Importing this package loads
NumPy with one BLAS thread, unless it is loaded already or its threads are set in the process's environment
(``OPENBLAS_NUM_THREADS``, ``OMP_NUM_THREADS``, ``MKL_NUM_THREADS``).
"""

from __future__ import annotations

import os
import sys

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "GOTO_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def _load_numpy() -> None:
    """Load NumPy with one thread; the environment, which child processes inherit, stays as it was."""
    if "numpy" in sys.modules or any(name in os.environ for name in _THREADS):
        return
    chosen = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    os.environ.update(dict.fromkeys(chosen, "1"))
    try:
        import numpy  # noqa: F401
    finally:
        for name in chosen:
            del os.environ[name]


_load_numpy()
