"""Servers for the doctor to examine, and the reports on some of them: ``python -m tests.doctor`` writes those."""
