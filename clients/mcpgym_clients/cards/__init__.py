"""An environment on a page, in Markdown: what a README and a hub show."""
