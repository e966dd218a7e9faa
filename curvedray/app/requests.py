"""What the page may ask, as models: every field named, every number finite and bounded. API.md says it in words."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from curvedray.app.limits import (
    LARGEST_PICTURE,
    LARGEST_SIDE,
    LONGEST_MOVES,
    LONGEST_PROMPT,
    LONGEST_SCENE,
    LONGEST_TITLE,
    MOST_BLOCKS,
    MOST_CUTS,
    MOST_FRAMES,
    MOST_KEYS,
)

ID = r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}"  # of a take, an upload or a map: when it was made, and chance
FARTHEST = 10_000.0  # metres from the scene's origin
Metres = Annotated[float, Field(ge=-FARTHEST, le=FARTHEST)]
Position = Annotated[list[Metres], Field(min_length=3, max_length=3)]
Degrees = Annotated[float, Field(ge=-36_000, le=36_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, Field(pattern=f"^{ID}$")]
Side = Annotated[int, Field(ge=8, le=LARGEST_SIDE)]
PictureSide = Annotated[int, Field(ge=8, le=LARGEST_PICTURE)]
Word = Annotated[str, Field(max_length=100)]


class Asked(BaseModel):
    """Nothing that is not named passes, and nothing is changed into another type."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class LensAsked(Asked):
    """A lens by name, or by its field of view in degrees across the width and its bend."""

    name: Annotated[str, Field(max_length=60)] | None = None
    hfov: Annotated[float, Field(gt=0, lt=360)] | None = None
    xi: Annotated[float, Field(ge=0, le=100)] = 0.0
    pan: Annotated[list[Annotated[float, Field(ge=-2, le=2)]], Field(min_length=2, max_length=2)] = [0.0, 0.0]
    zoom: Annotated[float, Field(ge=0.01, le=100)] = 1.0

    @model_validator(mode="after")
    def _one(self) -> "LensAsked":
        if (self.name is None) == (self.hfov is None):
            raise ValueError("a lens has a name or a field of view (hfov)")
        return self


class KeyAsked(Asked):
    """A keyframe: where the camera stands, how it is turned, how long the way to the next takes."""

    position: Position
    yaw: Degrees = 0.0
    pitch: Degrees = 0.0
    roll: Degrees = 0.0
    seconds: Annotated[float, Field(gt=0, le=100_000)] = 1.0
    lens: LensAsked | None = None


class PathAsked(Asked):
    """What the camera does: moves in words, keyframes, or an uploaded camera file."""

    moves: Annotated[str, Field(max_length=LONGEST_MOVES)] | None = None
    keys: Annotated[list[KeyAsked], Field(min_length=1, max_length=MOST_KEYS)] | None = None
    upload: Name | None = None
    smoothness: Share = 1.0
    loop: bool = False
    constant_speed: bool = False
    format: Word | None = None
    options: Annotated[dict[Word, str | float | bool], Field(max_length=10)] = {}
    scale: Annotated[float, Field(ge=1e-6, le=1e6)] | None = None
    horizon: bool = False
    lens: LensAsked | None = None
    frames: Annotated[int, Field(ge=1, le=MOST_FRAMES)] = 17
    width: Side = 96
    height: Side = 64
    fps: Annotated[float, Field(ge=0.1, le=240)] = 8.0
    near: Annotated[float, Field(ge=1e-3, le=1e4)] = 3.0

    @model_validator(mode="after")
    def _one(self) -> "PathAsked":
        if sum(i is not None for i in (self.moves, self.keys, self.upload)) != 1:
            raise ValueError("a path has one of moves, keys and upload")
        return self


class KeysAsked(Asked):
    path: PathAsked
    count: Annotated[int, Field(ge=2, le=MOST_KEYS)] = 4


class BlockAsked(Asked):
    """One thing of a blocked-out scene; `world/blocks.py` says what fits."""

    kind: Literal["box", "ball", "pillar", "wall"]
    size: Annotated[list[Metres], Field(min_length=1, max_length=3)] | None = None
    right: Metres = 0.0
    ahead: Metres = 0.0
    up: Metres = 0.0
    turned: Degrees = 0.0
    moving: Annotated[list[Metres], Field(min_length=2, max_length=2)] = [0.0, 0.0]


class SceneAsked(Asked):
    """What there is to see: blocks in words or as values, a caption of the procedural world, or the preview's court."""

    text: Annotated[str, Field(max_length=LONGEST_SCENE)] | None = None
    blocks: Annotated[list[BlockAsked], Field(max_length=MOST_BLOCKS)] | None = None
    caption: Annotated[str, Field(max_length=LONGEST_PROMPT)] | None = None
    court: bool = False
    eye: Annotated[float, Field(ge=0.05, le=100)] = 1.5

    @model_validator(mode="after")
    def _one(self) -> "SceneAsked":
        if (self.text is not None) + (self.blocks is not None) + (self.caption is not None) + self.court != 1:
            raise ValueError("a scene has one of text, blocks, caption and court")
        return self

    @property
    def is_blocks(self) -> bool:
        return self.text is not None or self.blocks is not None


Positions = Annotated[list[Position], Field(max_length=MOST_FRAMES)]


class SceneLook(Asked):
    scene: SceneAsked
    lens: LensAsked | None = None
    width: Side = 96
    height: Side = 64
    positions: Positions | None = None


class PictureAsked(Asked):
    scene: SceneAsked
    path: PathAsked
    frame: Annotated[int, Field(ge=0, lt=MOST_FRAMES)] = 0
    what: Literal["picture", "distances", "metres"] = "picture"
    width: PictureSide = 480
    height: PictureSide = 320
    samples: Annotated[int, Field(ge=1, le=4)] = 1
    limits: Annotated[list[Annotated[float, Field(gt=0, le=1e6)]], Field(min_length=2, max_length=2)] | None = None
    positions: Positions | None = None


class CheckAsked(Asked):
    scene: SceneAsked
    path: PathAsked


class ImportAsked(Asked):
    upload: Name
    format: Word | None = None
    options: Annotated[dict[Word, str | float | bool], Field(max_length=10)] = {}
    lens: LensAsked | None = None
    scale: Annotated[float, Field(ge=1e-6, le=1e6)] | None = None
    horizon: bool = False
    frames: Annotated[int, Field(ge=1, le=MOST_FRAMES)] = 17
    width: Side = 96
    height: Side = 64
    fps: Annotated[float, Field(ge=0.1, le=240)] = 8.0
    near: Annotated[float, Field(ge=1e-3, le=1e4)] = 3.0

    @property
    def path(self) -> PathAsked:
        return PathAsked(**{name: getattr(self, name) for name in ImportAsked.model_fields})


class ExportAsked(Asked):
    path: PathAsked
    format: Word
    unit: Literal["metric", "near"] = "metric"


class CutAsked(Asked):
    """A region that is left to the model: shares of the image, and some frames or all."""

    box: Annotated[list[Share], Field(min_length=4, max_length=4)]
    frames: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=2)] | None = None


class GreyAsked(Asked):
    """What a grey depth video's black and white are, in metres."""

    black: Annotated[float, Field(gt=0, le=1000)]
    white: Annotated[float, Field(gt=0, le=1000)]
    inverse: bool = False


Cuts = Annotated[list[CutAsked], Field(max_length=MOST_CUTS)]


class MapAsked(Asked):
    upload: Name | None = None
    scene: SceneAsked | None = None
    path: PathAsked | None = None
    lens: LensAsked | None = None
    frames: Annotated[int, Field(ge=1, le=MOST_FRAMES)] = 17
    width: Side = 96
    height: Side = 64
    meaning: Literal["radius", "z"] | None = None
    scale: Word = "m"
    near: Annotated[float, Field(ge=1e-3, le=1e4)] | None = None
    grey: GreyAsked | None = None
    cuts: Cuts = []
    model: Annotated[str, Field(max_length=1000)] = "embedded"  # that will film it: whose tokens the map is checked on

    @model_validator(mode="after")
    def _one(self) -> "MapAsked":
        if (self.upload is None) == (self.scene is None) or (self.scene is None) != (self.path is None):
            raise ValueError("a map is made of an upload, or of a scene and a path")
        return self


class FilmAsked(Asked):
    """A video to be generated."""

    prompt: Annotated[str, Field(min_length=1, max_length=LONGEST_PROMPT)]
    path: PathAsked
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    steps: Annotated[int, Field(ge=1, le=200)] | None = None
    guidance: Annotated[float, Field(ge=0, le=100)] | None = None
    camera_guidance: Annotated[float, Field(ge=0, le=100)] | None = None
    negative: Annotated[str, Field(max_length=LONGEST_PROMPT)] | None = None
    model: Annotated[str, Field(max_length=1000)] = "embedded"
    adapter: Annotated[str, Field(max_length=1000)] | None = None
    scene: SceneAsked | None = None
    map: Name | None = None
    cuts: Cuts = []
    radial_sigma: Annotated[float, Field(ge=0, le=3)] | None = None
    title: Annotated[str, Field(max_length=LONGEST_TITLE)] = ""
    project: dict[str, Any] | None = None


class AgainAsked(Asked):
    """The same take with something else in each of a few."""

    changes: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=8)]


class ScoreAsked(Asked):
    """A video to be scored against the cameras that were asked for."""

    upload: Name
    cameras: Name | None = None
    path: PathAsked | None = None
    lens: LensAsked | None = None
    estimator: Literal["colmap", "embedded", "vipe", "geocalib"] | None = None
    stride: Annotated[int, Field(ge=1, le=64)] | None = None
    title: Annotated[str, Field(max_length=LONGEST_TITLE)] = ""


class TransferAsked(Asked):
    """A video whose motion and layout are filmed again."""

    upload: Name
    prompt: Annotated[str, Field(min_length=1, max_length=LONGEST_PROMPT)]
    cameras: Name | None = None
    lens: LensAsked | None = None
    estimate: Literal["colmap", "embedded", "vipe"] | None = None
    near: Annotated[float, Field(ge=1e-3, le=1e4)] | None = None
    teacher: Literal["embedded", "depth-anything", "colmap", "unik3d", "unidepth"] = "embedded"
    moves: Annotated[str, Field(max_length=LONGEST_MOVES)] | None = None
    model: Annotated[str, Field(max_length=1000)] = "embedded"
    adapter: Annotated[str, Field(max_length=1000)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    title: Annotated[str, Field(max_length=LONGEST_TITLE)] = ""
