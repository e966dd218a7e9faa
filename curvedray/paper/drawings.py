"""The paper's drawings as our own vector figures; their geometry is computed by the package, not sketched."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from curvedray.cameras import Lens
from curvedray.encoding.curved import breakpoints, curved_path, expected_phasor
from curvedray.paper.catalogue import Item
from curvedray.paper.listener import Listener
from curvedray.paper.provenance import Provenance
from curvedray.paper.runner import Page, Work
from curvedray.paper.scales import Scale
from curvedray.paper.setting import Setting
from curvedray.paper.svg import BLUE, FAINT, GREEN, INK, ORANGE, RED, Drawing, Point
from curvedray.paper.values import PROPERTIES
from curvedray.tables import markdown_table

MU, SIGMA = 0.6, 0.9  # of the ray that the method's drawing follows
LENSES = {"pinhole": (80.0, 0.0, BLUE), "wide": (115.0, 0.6, GREEN), "fisheye": (170.0, 1.1, ORANGE)}


@dataclass(frozen=True)
class DrawingRunner:
    """A drawing: it needs nothing and is the same at every scale, but for the numbers of blocks that it names."""

    draw: Callable[[Setting], tuple[str, str]]  # the SVG, and a paragraph about it

    def needs_at(self, scale: Scale) -> tuple[str, ...]:
        return ()

    def work(self, setting: Setting) -> Work:
        return Work()

    def run(self, entry: Item, setting: Setting, hears: Listener) -> Page:
        drawing, words = self.draw(setting)
        name = f"{entry.name}.svg"
        text = f"# {entry.title}\n\n![{entry.title}]({name})\n\n{words}\n"
        made = Provenance.now(entry, setting)
        return Page(text, {"item": entry.name, **made.to_json(), "pictures": [name]}, {name: drawing.encode()})


def path_in(lens: Lens, points: int) -> Tensor:
    """(u, v, range) along one source ray, in a query camera one step to the right that looks back at it."""
    radii = breakpoints(torch.tensor([[MU]]), torch.tensor([[SIGMA]]), points)
    ray = torch.tensor([-0.35, -0.25, 0.9])
    rays = (ray / ray.norm()).reshape(1, 1, 1, 3)
    turn = torch.tensor(0.25)
    pose = torch.eye(4)
    pose[0, 0], pose[0, 2], pose[2, 0], pose[2, 2] = turn.cos(), turn.sin(), -turn.sin(), turn.cos()
    pose[:3, 3] = torch.tensor([1.0, 0.35, -0.2])
    return curved_path(radii, rays, pose[None], lens)[0, 0, 0, :, :3]


def method_drawing(setting: Setting) -> tuple[str, str]:
    """Four panels: an interval on a ray, lifted, curved by the query's lens, and its expected phasor by K."""
    page = Drawing(1060, 330, "CRePE: an interval along a ray, its curved path in a query view, the expected phasor")
    for number, title in enumerate(("interval along the ray", "lifted into space", "path in the query view", "phasor")):
        left = 15 + 262 * number
        page.box((left, 34), (246, 280), fill="#ffffff", edge="#c9d0dc")
        page.words((left + 8, 24), f"{number + 1}  {title}", 14, anchor="start", bold=True)
    _interval_panel(page, 15)
    _space_panel(page, 277)
    _query_panel(page, 539)
    _phasor_panel(page, 801)
    return page.text(), (
        f"One token's interval (mu {MU:g}, sigma {SIGMA:g}, K = 5) and one pair of cameras; the curves of panels 3 "
        "and 4 are computed by `curved_path` and `expected_phasor`. The bounded coordinate bends a path a little even "
        "through a pinhole; a bent lens adds a curvature of its own."
    )


def _interval_panel(page: Drawing, left: float) -> None:
    start, end = (left + 24, 280.0), (left + 222, 92.0)
    page.arrow([start, end], FAINT)
    page.words((start[0] + 4, start[1] + 18), "source camera", 11, FAINT, "start")
    radii = breakpoints(torch.tensor([MU]), torch.tensor([SIGMA]), 5)[0]
    for number, radius in enumerate(radii.tolist()):
        share = 0.12 + 0.8 * radius / float(radii[-1])
        at = (start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1]))
        page.dot(at, 5, ORANGE)
        page.words((at[0] - 10, at[1] - 4), f"r{number + 1} = {radius:.2f}", 11, anchor="end")
    page.words((left + 123, 62), "z = log r, even on [mu - |sigma|, mu + |sigma|]", 10.5)


def _space_panel(page: Drawing, left: float) -> None:
    """A plan from above: both cameras, the source ray, and where the breakpoints stand."""

    def plan(x: float, z: float) -> Point:
        return left + 70 + 34 * x, 285 - 34 * z

    for name, (x, z), colour in (("source", (0.0, 0.0), INK), ("query", (2.2, 0.3), BLUE)):
        a, b, c = plan(x, z), plan(x - 0.45, z + 0.8), plan(x + 0.45, z + 0.8)
        page.line([b, a, c, b], colour)
        page.words((a[0], a[1] + 14), name, 11, colour)
    page.line([plan(0, 0), plan(1.9, 5.6)], FAINT, dashed=True)
    radii = breakpoints(torch.tensor([MU]), torch.tensor([SIGMA]), 5)[0].tolist()
    for radius in radii:
        point = plan(0.32 * radius * 0.95, 0.95 * radius)
        page.dot(point, 5, ORANGE)
        page.line([plan(2.2, 0.3), point], BLUE, 0.8)
    page.words((left + 123, 62), "seen from the query, even steps are uneven", 10.5)


def _query_panel(page: Drawing, left: float) -> None:
    lenses = {name: Lens.from_fov(fov, xi, 96, 64) for name, (fov, xi, _) in LENSES.items()}
    paths = {name: path_in(lens, 60)[:, :2] for name, lens in lenses.items()}
    everything = torch.cat(list(paths.values()))
    low, high = everything.amin(0), everything.amax(0)
    scale = min(190 / float(high[0] - low[0]), 150 / float(high[1] - low[1]))

    def place(uv: Tensor) -> Point:
        x, y = ((uv - (low + high) / 2) * scale).tolist()
        return left + 123 + x, 158 + y

    for row, (name, (fov, xi, colour)) in enumerate(LENSES.items()):
        page.line([place(uv) for uv in paths[name]], colour, 2)
        for uv in path_in(lenses[name], 5)[:, :2]:
            page.dot(place(uv), 3.5, colour)
        page.words((left + 12, 262 + 16 * row), f"{name}, {fov:g} degrees, xi {xi:g}", 11, colour, "start")
    page.words((left + 123, 62), "(u, v) of one ray, through three lenses", 10.5)


def _phasor_panel(page: Drawing, left: float) -> None:
    """The expected phasor of one channel for each K, on the unit circle, and the dense integral."""
    centre, radius = (left + 123.0, 175.0), 92.0
    page.dot(centre, radius, FAINT, filled=False)
    page.line([(centre[0] - radius, centre[1]), (centre[0] + radius, centre[1])], "#dfe3ea", 1)
    page.line([(centre[0], centre[1] - radius), (centre[0], centre[1] + radius)], "#dfe3ea", 1)
    lens = Lens.from_fov(*LENSES["fisheye"][:2], 96, 64)
    for points, colour in ((1, FAINT), (2, RED), (3, ORANGE), (5, GREEN), (2001, INK)):
        radii = path_in(lens, points) if points > 1 else path_in(lens, 3)[1:2]
        cos, sin = expected_phasor(14.0 * radii[:, 0])
        tip = (centre[0] + radius * float(cos), centre[1] - radius * float(sin))
        page.arrow([centre, tip], colour, 2 if points > 100 else 1.5)
        row = (1, 2, 3, 5, 2001).index(points)
        name = "dense" if points > 100 else f"K = {points}"
        page.words((left + 14 + 48 * row, 300), name, 11, colour, "start")
    page.words((left + 123, 62), "shorter where the place is unsure", 10.5)


def architecture_drawing(setting: Setting) -> tuple[str, str]:
    """The adapter beside a frozen block, and which blocks are curved."""
    curved = setting.base.adapter.curved(setting.depth)
    page = Drawing(980, 420, "The Geometric Attention Adapter beside a frozen transformer block")
    page.box((30, 190), (90, 44), ["tokens x"])
    page.box((170, 190), (110, 44), ["LayerNorm,", "scale, shift"], letters=12)
    page.box((360, 110), (170, 44), ["self-attention (frozen)"], fill="#dde7f3")
    page.box((330, 236), (230, 150), edge=ORANGE, fill="#fdf3ea")
    page.words((445, 254), "adapter, trained", 12, ORANGE, bold=True)
    page.box((345, 264), (96, 40), ["orientation", "maps"], letters=11)
    page.box((345, 330), (96, 40), ["radial head:", "mu, sigma"], letters=11)
    page.box((455, 264), (94, 40), ["q, k, v,", "an eighth as wide"], letters=10.5)
    page.box((455, 330), (94, 40), ["attention with", "turned keys"], letters=11)
    page.box((600, 300), (90, 40), ["output,", "zero at first"], letters=11)
    page.box((640, 190), (44, 44), ["+"], letters=18)
    page.box((740, 190), (60, 44), ["gate"])
    page.arrow([(120, 212), (170, 212)])
    page.arrow([(280, 212), (320, 212), (320, 132), (360, 132)])
    page.arrow([(320, 212), (320, 284), (345, 284)], ORANGE)
    page.arrow([(320, 284), (320, 350), (345, 350)], ORANGE)
    page.arrow([(441, 284), (455, 284)], ORANGE)
    page.arrow([(441, 350), (455, 350)], ORANGE)
    page.arrow([(502, 304), (502, 330)], ORANGE)
    page.arrow([(549, 350), (575, 350), (575, 320), (600, 320)], ORANGE)
    page.arrow([(530, 132), (662, 132), (662, 190)])
    page.arrow([(645, 300), (645, 268), (662, 268), (662, 234)], ORANGE)
    page.arrow([(684, 212), (740, 212)])
    page.arrow([(800, 212), (850, 212)])
    page.words((470, 404), "cameras and, at will, a map of distances enter here", 11, ORANGE)
    page.words((20, 66), f"{setting.depth} blocks", 13, anchor="start", bold=True)
    width = min(26.0, 780 / setting.depth)
    for block in range(setting.depth):
        fill = "#f6c79d" if block in curved else "#dde7f3"
        page.box((110 + width * block, 48), (width - 3, 26), fill=fill, edge="#8a93a6")
    page.words((110 + width * setting.depth + 8, 66), "orange: curved rays; blue: relative rays", 11, anchor="start")
    return page.text(), (
        f"Blocks {curved.start} to {curved.stop - 1} of {setting.depth} have curved rays, the others UCPE's relative "
        "rays. The backbone is frozen; with its output at zero the adapter changes nothing."
    )


def properties_drawing(setting: Setting) -> tuple[str, str]:
    """The paper's table of what each encoding can do."""
    methods, rows = PROPERTIES
    page = Drawing(760, 60 + 34 * len(rows), "Which geometry-aware encoding can do what")
    for number, name in enumerate(methods):
        page.words((440 + 120 * number, 30), name, 13, bold=True)
    for line, (name, answers) in enumerate(rows.items()):
        y = 64 + 34 * line
        page.line([(16, y - 22), (744, y - 22)], "#dfe3ea", 1)
        page.words((20, y), name, 13, anchor="start")
        for number, answer in enumerate(answers):
            colour = {"yes": GREEN, "no": RED}.get(answer, FAINT)
            page.words((440 + 120 * number, y), answer, 13, colour, bold=True)
    table = markdown_table(["property", *methods], [[name, *answers] for name, answers in rows.items()])
    return page.text(), f"{table}\n\nEach `yes` of CRePE is a law of the tests: see docs/paper.md for where."
