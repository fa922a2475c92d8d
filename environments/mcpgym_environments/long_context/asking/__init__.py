"""The model that code in the sandbox may ask: which it is, what an episode may ask of it, and what it answered."""
