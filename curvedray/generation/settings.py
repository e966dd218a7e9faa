"""How a video is sampled: numbers that a model has defaults for, each within bounds in which it means something."""

from dataclasses import dataclass
from typing import Any

from curvedray.configs import check_laws, number, whole
from curvedray.errors import InputError
from curvedray.models.flow import SAMPLERS
from curvedray.models.interface import VideoModel
from curvedray.radial.interval import TEACHER_SIGMA

MOST_STEPS, MOST_GUIDANCE, MOST_SHIFT, MOST_SIGMA = 1000, 100.0, 1000.0, 3.0
LONGEST_SIDE, MOST_PIXELS = 8192, 10**9  # of a video: ten times Wan2.2's 121 frames of 1280 x 704
NEAREST, FARTHEST_NEAR = 1e-3, 1e4  # metres: a near distance from a pinhead to a mountain range
SIZES = ("frames", "height", "width")
GUIDED = ("guidance", "camera_guidance", "drop_text", "block_guidance", "left_out")  # what a model has its own way of
LONGEST_PATH = 1000.0  # near distances; past it nothing of the first frame is in sight


@dataclass(frozen=True)
class Settings:
    """How a video is sampled; `Settings.of(model, ...)` fills what is left open with the model's own defaults."""

    frames: int
    height: int
    width: int
    steps: int
    guidance: float  # towards the text; both passes see the camera. 1: none
    camera_guidance: float  # towards the camera, away from the backbone alone. 1: none
    shift: float  # of the noise levels the sampler visits
    map_guidance: float = 1.0  # towards a radial map, away from the radii that the adapter predicts. 1: none
    drop_text: bool = False  # camera guidance also guides towards the text, at no extra pass
    block_guidance: float = 1.0  # away from the same model without one of its blocks, which draws worse. 1: none
    left_out: int = 0  # that block
    radial_sigma: float = TEACHER_SIGMA  # half the width, in log radius, of what a radial map says
    sampler: str = "unipc"
    seed: int = 0
    zoom: int = 1  # the video's pixels per pixel of the model's, when it is written

    @classmethod
    def of(cls, model: VideoModel, **chosen: Any) -> "Settings":
        """The model's defaults, overruled by every keyword that is not None."""
        names = (*SIZES, "steps", *GUIDED, "zoom")
        own = {name: getattr(model.defaults, name) for name in names} | {"shift": model.shift}
        return cls(**(own | {name: value for name, value in chosen.items() if value is not None}))

    def __post_init__(self) -> None:
        most = f"{MOST_GUIDANCE:g}"
        sides = [("frames", self.frames), ("height", self.height), ("width", self.width)]
        check_laws(self, [(name, whole(side, 1, LONGEST_SIDE), f"1 to {LONGEST_SIDE}") for name, side in sides])
        if (pixels := self.frames * self.height * self.width) > MOST_PIXELS:
            got = f"{self.frames} frames of {self.width} x {self.height}"
            raise InputError("video", f"at most {MOST_PIXELS:,} pixels in all", f"{got}, {pixels:,}")
        laws = [
            ("steps", whole(self.steps, 1, MOST_STEPS), f"at least one, at most {MOST_STEPS}"),
            ("guidance", number(self.guidance, 0, MOST_GUIDANCE), f"a number from 0 to {most}, 1 for none"),
            ("camera_guidance", number(self.camera_guidance, 0, MOST_GUIDANCE), f"0 to {most}, 1 for none"),
            ("map_guidance", number(self.map_guidance, 0, MOST_GUIDANCE), f"0 to {most}, 1 for none"),
            ("block_guidance", number(self.block_guidance, 0, MOST_GUIDANCE), f"0 to {most}, 1 for none"),
            ("left_out", whole(self.left_out, 0, MOST_STEPS), "the number of a block, from 0"),
            ("sampler", self.sampler in SAMPLERS, " or ".join(SAMPLERS)),
            ("shift", number(self.shift, 1 / MOST_SHIFT, MOST_SHIFT), f"{1 / MOST_SHIFT:g} to {MOST_SHIFT:g}"),
            ("radial_sigma", number(self.radial_sigma, 0, MOST_SIGMA), f"a log distance from 0 to {MOST_SIGMA:g}"),
            ("seed", whole(self.seed, 0, 2**63 - 1), "a whole number >= 0"),
            ("zoom", whole(self.zoom, 1, 16), "a whole number from 1 to 16"),
        ]
        check_laws(self, laws)

    def guides_camera(self, has_adapter: bool) -> bool:
        """Whether there is a pass without the camera. Without an adapter it may still be one without the text."""
        return self.camera_guidance != 1 and (has_adapter or self.drop_text)

    def passes(self, has_adapter: bool = True) -> int:
        """Calls of the transformer per step: one, and one more for each kind of guidance."""
        guides_map = self.map_guidance != 1 and has_adapter
        guides = (self.guidance != 1, self.guides_camera(has_adapter), guides_map, self.block_guidance != 1)
        return 1 + sum(guides)

    @property
    def needs_negative(self) -> bool:
        return self.guidance != 1 or (self.drop_text and self.camera_guidance != 1)


def check_near(near: object) -> None:
    """A near distance in metres, or none."""
    if near is not None and not number(near, NEAREST, FARTHEST_NEAR):
        raise InputError("near", f"metres, from {NEAREST:g} to {FARTHEST_NEAR:g}", near)
