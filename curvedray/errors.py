"""What a user got wrong, said so that they can mend it: the name, what was expected, what was got, the next step."""


class InputError(ValueError):
    """A user's mistake. The command line prints it as one sentence, without a traceback, and exits with code 2."""

    def __init__(self, name: str, expected: str, got: object, fix: str = ""):
        self.name, self.expected, self.got, self.fix = name, expected, str(got), fix
        super().__init__(f"{name}: expected {expected}, got {self.got}" + (f". {fix}" if fix else ""))
