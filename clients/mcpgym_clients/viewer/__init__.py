"""``mcpgym view``: runs as a page for people, served on this machine or written to one file.

``library`` finds what there is below some folders, ``cards`` says in short what each of it is, ``trace_index`` knows
where each trace of a run stands and what a list shows of it, ``reading`` makes of one trace what a reader needs,
``move_values`` says what each legal move was worth, ``token_texts`` what was sampled, ``comparing_runs`` and
``training_runs`` make the other pages' data. ``answers`` puts these together; ``site`` serves them, and ``exporting``
writes them down. ``static`` is the page: JavaScript modules that a browser runs as they are.

All that traces say is somebody else's: it is data everywhere here, never a path, a module's name or markup.
"""
