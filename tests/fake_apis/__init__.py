"""Model providers' APIs on loopback, with a function for a model. They refuse what the real ones refuse."""
