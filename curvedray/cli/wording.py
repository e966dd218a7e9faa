"""Errors in the command line's own words: its options, where Python has arguments."""

import re

ARGUMENTS = ("near", "lens", "size", "frames", "fps", "format")
PLAIN_WORDS = {"the near distance": "--near"}


def in_options(message: str) -> str:
    """`near=` and `format='tum'` as `--near` and `--format tum`; what is named in plain words, with its option."""
    names = "|".join(ARGUMENTS)
    message = re.sub(rf"(?<![\w-])({names})='?([\w-]*)'?", lambda i: f"--{i[1]} {i[2]}".rstrip(), message)
    for words, option in PLAIN_WORDS.items():
        if words in message and option not in message:
            message = message.replace(words, f"{words} ({option})", 1)
    return message
