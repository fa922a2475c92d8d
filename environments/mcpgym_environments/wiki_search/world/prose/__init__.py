"""What the pages of a generated world say, and how they say it."""
