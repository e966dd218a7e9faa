"""What a user got wrong, said so that they can mend it: the name, what was expected, what was got, the next step."""

LONGEST_QUOTE = 400  # characters of anything that a message repeats


class InputError(ValueError):
    """A user's mistake. The command line prints it as one sentence, without a traceback, and exits with code 2."""

    def __init__(self, name: str, expected: str, got: object, fix: str = ""):
        self.name, self.expected, self.got, self.fix = quoted(name), quoted(expected), quoted(got), quoted(fix)
        super().__init__(f"{self.name}: expected {self.expected}, got {self.got}" + (f". {self.fix}" if fix else ""))

    def __reduce__(self) -> tuple[type, tuple[str, str, str, str]]:
        """It travels from one process to another."""
        return type(self), (self.name, self.expected, self.got, self.fix)


def quoted(value: object, longest: int = LONGEST_QUOTE) -> str:
    """Text that is safe to print: cut in the middle where it is long, control characters as escapes.

    File names and captions are other people's: an escape sequence in one must not reach a terminal.
    """
    text = str(value)
    if len(text) > longest:
        text = f"{text[: longest // 2]} ... {text[-longest // 4 :]}"
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape", "replace").decode() for c in text)
