"""Problems that are made, not collected: each from a seed, with an answer or tests that are known to be right."""
