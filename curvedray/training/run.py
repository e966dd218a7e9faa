"""From a recipe to its weights: open the model, open the clips, train. `curvedray.train` is these steps in one call."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curvedray.data.cache import broken_shards
from curvedray.data.clips import ClipSource, HeldOut
from curvedray.data.sources import check_source, open_clips, open_held_out, video_shape
from curvedray.models.interface import VideoModel
from curvedray.models.open import load_model
from curvedray.training import loop
from curvedray.training.estimate import Estimate, estimate
from curvedray.training.log import Say, Tick, no_say, no_tick
from curvedray.training.loop import Result
from curvedray.training.process import Process
from curvedray.training.recipe import Recipe, changed
from curvedray.training.recipes import recipe as recipe_named
from curvedray.training.start import check_run_folder, check_targets


def train(
    recipe: Recipe | str,
    out: str | Path,
    changes: Mapping[str, Any] | None = None,
    *,
    resume: bool = False,
    tracker: Any = None,
    shard: bool = False,
    tick: Tick = no_tick,
    say: Say = no_say,
) -> Result:
    """Train what a recipe says, and leave checkpoints, a log and the weights in the folder `out`.

    The recipe may be a name (`curvedray train --list` has them all), with `changes` such as {"steps": 500,
    "adapter.breakpoints": 3, "data.source": "footage"}. `resume` goes on from the newest whole checkpoint. `tick(done,
    total, words)` hears of every step, `say` of what happens. `shard` splits the backbone over the processes that a
    launcher started.
    """
    chosen = changed(recipe_named(recipe) if isinstance(recipe, str) else recipe, changes or {})
    check_source(chosen.data)
    run = Run.prepare(chosen, Path(out), tracker, shard)
    run.check_folder()
    clips, held_out = run.open_clips(say=say)
    return run.train(clips, held_out, resume=resume, tick=tick, say=say)


@dataclass(frozen=True, eq=False)
class Run:
    """A recipe with its model opened and its cost known; nothing is trained or written yet."""

    recipe: Recipe
    out: Path
    process: Process
    model: VideoModel
    expected: Estimate

    @classmethod
    def prepare(cls, recipe: Recipe, out: Path, tracker: Any = None, shard: bool = False) -> "Run":
        process = Process(recipe, out, tracker, shard)
        model = load_model(recipe.model, device=process.device)
        return cls(recipe, out, process, model, estimate(recipe, model, video_shape(recipe.data, model), process))

    def check_folder(self) -> None:
        if self.process.is_first:
            check_run_folder(self.out)

    def open_clips(
        self, tick: Callable[[int, int], None] = lambda done, total: None, say: Say = no_say
    ) -> tuple[ClipSource, HeldOut | None]:
        """The clips to train on, encoded once, and those held out; then what encoded them is let go."""
        recipe, process = self.recipe, self.process
        share = (process.rank, process.count)
        clips, report = open_clips(
            recipe.data,
            self.model,
            self.out,
            held_out=recipe.validation_clips,
            share=share,
            wait=process.wait,
            tick=tick,
        )
        broken = broken_shards(clips)
        skipped = [] if report is None else [one for one in report.skipped if one not in broken]
        if skipped:
            say(f"{len(skipped)} clips were left out; the first: {': '.join(skipped[0])}")
        if process.is_first:
            for name, reason in broken:
                say(f"shard {name} was left out, or a part of it: {reason}")
            check_targets(recipe, clips, say)
        held_out = None
        for rank in range(process.count if process.shards else 1):  # one at a time: they share a cache
            if recipe.every.validate and process.rank == rank:
                held_out = open_held_out(recipe.data, self.model, self.out, recipe.validation_clips)
            if process.shards:
                process.wait()
        if recipe.data.cache != "off":  # all texts and videos are encoded; the decoder is for validation's videos
            self.model.release(text=True, vae=held_out is None)
        return clips, held_out

    def train(
        self,
        clips: ClipSource,
        held_out: HeldOut | None,
        *,
        resume: bool = False,
        tick: Tick = no_tick,
        say: Say = no_say,
    ) -> Result:
        return loop.train(
            self.recipe,
            self.model,
            clips,
            self.out,
            self.process,
            resume=resume,
            validation=held_out,
            tick=tick,
            say=say,
        )
