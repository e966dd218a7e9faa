"""Who hears of an experiment's progress."""

from dataclasses import dataclass

from curvedray.training.log import Say, Tick, no_say, no_tick


@dataclass(frozen=True)
class Listener:
    """`say` hears of every stage, `tick(done, total, words)` within the long ones."""

    say: Say = no_say
    tick: Tick = no_tick
