"""What somebody tries who has a player's URL and wants more: each module is one kind of attempt."""
