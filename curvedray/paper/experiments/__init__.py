"""One file per table that can be run, named as the table (`zero-shot` is `zero_shot.py`): each defines `experiment`."""
