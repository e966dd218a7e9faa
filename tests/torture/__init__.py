"""Attacks on every reader, option and write, kept so that they can be made again: see docs/robustness.md."""
