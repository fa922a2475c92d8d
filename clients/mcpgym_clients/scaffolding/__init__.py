"""``mcpgym new``: a package with an environment of your own, which works before you have changed anything.

``templates`` holds packages as they would be written by hand for an environment called my-env; ``writing`` puts in the
names that were asked for.
"""
