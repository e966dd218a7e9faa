"""Where a result comes from: the command, the day, the machine, the model, and how large the run was."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import curvedray
from curvedray.bench.harness import hardware
from curvedray.paper.catalogue import Item
from curvedray.paper.setting import Setting


@dataclass(frozen=True)
class Provenance:
    """Printed above every table, and stored beside its numbers."""

    command: str
    date: str
    hardware: str
    version: str
    scale: str
    model: str
    weights: str  # a key of the model's weights
    source: str
    blocks: int
    tokens: tuple[int, int, int]  # latent frames, rows, columns
    seeds: int
    clips: int
    overrides: tuple[str, ...]
    says: str

    @classmethod
    def now(cls, entry: Item, setting: Setting, says: str = "") -> "Provenance":
        grid, scale = setting.grid, setting.scale
        places = [f"--use {key}=..." for key in setting.places]
        seeds = [f"--seeds {setting.seeds}"] if setting.seeds > 1 else []
        clips = [f"--clips {setting.clips}"] if setting.clips else []
        words = ["curvedray paper run", entry.name, "--scale", scale.name, *seeds, *clips, *places, *setting.overrides]
        return cls(
            command=" ".join(words),
            date=datetime.now(UTC).date().isoformat(),
            hardware=hardware(),
            version=curvedray.__version__,
            scale=scale.name,
            model=setting.scale.model,
            weights=setting.model_key[:12],
            source=scale.source or "panshot",
            blocks=setting.depth,
            tokens=(grid.frames, grid.rows, grid.cols),
            seeds=setting.seeds,
            clips=setting.clips or scale.clips,
            overrides=setting.overrides,
            says=says,
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> list[str]:
        """Three lines of Markdown."""
        grid = " x ".join(map(str, self.tokens))
        said = [f"`{self.command}`, {self.date}. {self.hardware}.", ""]
        said.append(
            f"curvedray {self.version}, scale {self.scale}: model `{self.model}` (weights {self.weights}), "
            f"{self.blocks} blocks, {grid} tokens, clips of `{self.source}`."
        )
        return [*said, "", self.says] if self.says else said
