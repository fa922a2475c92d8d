"""Benchmarks: CPU per call and episodes per second, each as a ratio to a reference measured in the same run."""
