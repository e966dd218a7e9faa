"""One file per item, named as it is (`zero-shot` is `zero_shot.py`): each defines `runner`, which runs it."""
