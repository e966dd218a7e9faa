"""What running an item takes, before it starts: what is missing here and what brings it, hours and disk."""

from dataclasses import asdict, dataclass
from typing import Any

from curvedray.adapter.cost import GPU_SPEED, duration
from curvedray.cameras import TokenGrid
from curvedray.paper.catalogue import Item
from curvedray.paper.needs import NEEDS, of_scale
from curvedray.paper.runner import Work, runner_of
from curvedray.paper.setting import Setting
from curvedray.tables import markdown_table

# Of the embedded model: a training step of 8 clips, in bfloat16; a video of a batch of 8 filmed; one read and scored.
# Seconds of one core of an AMD EPYC beside other work, 2026-11-18.
STEP_SECONDS, FILM_SECONDS, ESTIMATE_SECONDS = 1.0, 2.0, 0.1
WAN_DIM, WAN_BLOCKS, WAN_FFN, WAN_TEXT = 1536, 30, 8960, 512
WAN_FILM_PASSES = 100  # 50 steps, each with and without the prompt
FULL_PASSES = 4  # of a training step's clip, in forward passes: forward, backward twice, forward again by checkpointing
VIDEO_GB = {"embedded": 0.0001, "wan": 0.02, "tiny": 0.0001}  # a video, its estimate and its scores
ADAPTER_GB = {"embedded": 0.03, "wan": 1.2, "tiny": 0.03}  # a training's checkpoints and weights


@dataclass(frozen=True)
class Line:
    """One need of a plan."""

    key: str
    says: str
    stage: str
    missing: str  # why it cannot be used; nothing: it is here
    brings: str


@dataclass(frozen=True)
class Plan:
    """What an item takes at a scale, and how much of it is done."""

    item: str
    scale: str
    work: Work
    needs: tuple[Line, ...]
    hours: float
    device: str
    gigabytes: float  # that the run writes
    folder: str

    @property
    def missing(self) -> list[Line]:
        return [line for line in self.needs if line.missing]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def sentence(self) -> str:
        """The work in one sentence."""
        work = self.work
        left = len(work.trainings) - work.done
        if not (work.trainings or work.films):
            return f"It trains and films nothing, takes seconds, and writes to {self.folder}."
        steps = sum(work.trainings.values())
        done = f" ({work.done} done)" if work.done else ""
        return (
            f"It trains {left} of {len(work.trainings)} adapters{done}, {steps} steps in all, films {work.films} "
            f"videos and reads {work.estimates}: about {duration(3600 * self.hours)} on {self.device}. It writes about "
            f"{self.gigabytes:.2g} GB to {self.folder}, and if it was stopped it goes on there."
        )

    def to_markdown(self) -> str:
        lines = [f"**{self.item}** at scale {self.scale}. {self.sentence()}", ""]
        if self.needs:
            rows = [[line.key, line.says, line.stage, line.missing or "here"] for line in self.needs]
            lines += [markdown_table(["needs", "what", "to", "state"], rows), ""]
        if self.missing:
            lines += ["What is missing, and what brings it:", ""]
            lines += [f"- {line.key}: `{line.brings}`" for line in self.missing]
            first = min(self.missing, key=lambda line: ("train", "generate", "estimate").index(line.stage))
            lines += ["", f"As it is, it runs up to the first missing piece: {first.key} ({first.stage})."]
        else:
            lines.append("Nothing is missing here.")
        return "\n".join(lines) + "\n"


def plan_of(entry: Item, setting: Setting, folder: str) -> Plan:
    """Nothing is opened but the files' names."""
    runner = runner_of(entry)
    work = runner.work(setting)
    keys = dict.fromkeys(
        (*of_scale(setting.scale), *runner.needs_at(setting.scale)) if work.trainings or work.films else ()
    )
    needs = tuple(
        Line(key, need.says, need.stage, need.missing(setting.places), need.brings)
        for key, need in ((key, NEEDS[key]) for key in keys)
    )
    hours, device = hours_of(work, setting)
    scale = setting.scale.name
    gigabytes = len(work.trainings) * ADAPTER_GB[scale] + work.films * VIDEO_GB[scale]
    gigabytes += 0.0 if not work.trainings else cache_gigabytes(setting)
    return Plan(entry.name, scale, work, needs, hours, device, gigabytes, folder)


def hours_of(work: Work, setting: Setting) -> tuple[float, str]:
    """Of what is left to do: measured for the embedded model, counted for Wan."""
    share = 1 - work.done / max(1, len(work.trainings))
    steps, batch = share * sum(work.trainings.values()), setting.base.batch
    if setting.scale.is_world:
        seconds = steps * STEP_SECONDS * batch / 8 + work.films * FILM_SECONDS + work.estimates * ESTIMATE_SECONDS
        return seconds / 3600, "one core"
    operations = wan_operations(setting.grid)
    seconds = (steps * batch * FULL_PASSES + work.films * WAN_FILM_PASSES) * operations / GPU_SPEED
    return seconds / 3600, "one large GPU, estimators aside"


def wan_operations(grid: TokenGrid) -> float:
    """Of one pass of Wan2.1-1.3B: linear layers, self-attention, attention to the text. Diffusers is not imported for
    it, which would take longer than the rest of a dry run; a test compares it with a count of the real layers.
    """
    n, words, d = grid.tokens, WAN_TEXT, WAN_DIM
    linear = 2 * n * (6 * d * d + 2 * d * WAN_FFN) + 4 * words * d * d
    return float(WAN_BLOCKS * (linear + 4 * n * n * d + 4 * n * words * d))


def cache_gigabytes(setting: Setting) -> float:
    """The encoded clips: latents and text in half precision."""
    grid, clips = setting.grid, setting.base.data.clips
    text = 24 * 256 if setting.scale.is_world else 512 * 4096  # tokens and their width
    return 2 * clips * (grid.tokens * 4 * 16 + text) / 1e9
