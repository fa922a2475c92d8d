"""Configuration of the command line: a file, environment variables, flags; each of them beats the ones before.

    command.py        a command that is configured, which is what every command is made of
    files.py          which files are read, and how
    bounds.py         how large and deep what it holds may be
    places.py         on which line of a file something stands
    names.py          what an option is called in a file and in the environment
    values.py         what a file gives an option, as its parser takes it
    trust.py          what a file may set that was merely found in the working folder
    secrecy.py        secrets, which stand in no file and in no flag
    tables.py         a command's table, and what is wrong with it
    environments.py   the tables of environments, as --config
    variables.py      variables that belong to no option
    checking.py       mcpgym config check
    showing.py        mcpgym config show

The precedence, the types and the bounds are Typer's own: a file is the ``default_map`` of a command's context.
"""
