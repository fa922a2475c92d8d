"""The parts of a new, tiny model: its transcripts, its tokenizer, its chat template and its first weights."""
