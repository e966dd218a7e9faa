"""Clips and draws by step, made ready while the step before trains."""

from concurrent.futures import Future, ThreadPoolExecutor

from curvedray.cameras import TokenGrid
from curvedray.data.clips import Batch, ClipSource, Skipped, batch_of, clip_at
from curvedray.training.objective import Draws, draw
from curvedray.training.process import Process
from curvedray.training.recipe import Recipe


class Feed:
    """This process's share of every step."""

    def __init__(
        self,
        recipe: Recipe,
        clips: ClipSource,
        latent_shape: tuple[int, ...],
        grid: TokenGrid,
        process: Process,
        skipped: Skipped,
    ):
        self.recipe, self.clips, self.latent_shape, self.grid = recipe, clips, latent_shape, grid
        self.process, self.skipped = process, skipped
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="clips")
        self._next: tuple[int, Future[list[tuple[Batch, Draws]]]] | None = None

    def step(self, step: int) -> list[tuple[Batch, Draws]]:
        """One batch, and what chance decides about it, for each pass of a step."""
        if self._next is None or self._next[0] != step:
            self._next = step, self._pool.submit(self._read, step)
        passes = self._next[1].result()
        if step + 1 < self.recipe.steps:
            self._next = step + 1, self._pool.submit(self._read, step + 1)
        return [(batch.to(self.process.device), draws.to(self.process.device)) for batch, draws in passes]

    def _read(self, step: int) -> list[tuple[Batch, Draws]]:
        passes = []
        for part in range(self.recipe.accumulate):
            slots = self.process.slots(part)
            first = step * self.recipe.batch
            clips = [clip_at(self.clips, first + slot, self.recipe.seed, self.skipped) for slot in slots]
            passes.append((batch_of(clips), draw(self.recipe, step, slots, self.latent_shape, self.grid)))
        return passes

    def __enter__(self) -> "Feed":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
