"""Vector drawings as SVG text, written by code: a page that boxes, arrows, lines and words are put on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

INK, FAINT, PAPER = "#1d2330", "#8a93a6", "#ffffff"
BLUE, ORANGE, GREEN, RED, PLAIN = "#2f6fb3", "#d9752b", "#2e8b57", "#b3413b", "#eef1f6"
FONT = "font-family='Helvetica, Arial, sans-serif'"
Point = tuple[float, float]


@dataclass
class Drawing:
    """Marks in the order in which they are made; `text()` is the file."""

    width: float
    height: float
    title: str  # what a reader who cannot see it is told
    marks: list[str] = field(default_factory=list)

    def words(
        self, at: Point, text: str, size: float = 13, colour: str = INK, anchor: str = "middle", bold: bool = False
    ) -> None:
        weight = " font-weight='bold'" if bold else ""
        x, y = at
        self.marks.append(
            f"<text x='{x:.1f}' y='{y:.1f}' {FONT} font-size='{size:g}' fill='{colour}' "
            f"text-anchor='{anchor}'{weight}>{escape(text)}</text>"
        )

    def box(
        self,
        corner: Point,
        size: Point,
        lines: Sequence[str] = (),
        fill: str = PLAIN,
        edge: str = INK,
        letters: float = 13,
    ) -> None:
        """A rounded box with centred lines of words."""
        (x, y), (w, h) = corner, size
        self.marks.append(
            f"<rect x='{x:.1f}' y='{y:.1f}' width='{w:.1f}' height='{h:.1f}' rx='6' fill='{fill}' stroke='{edge}'/>"
        )
        top = y + h / 2 - (len(lines) - 1) * letters * 0.62 + letters * 0.35
        for number, line in enumerate(lines):
            self.words((x + w / 2, top + number * letters * 1.25), line, letters)

    def line(self, points: Iterable[Point], colour: str = INK, width: float = 1.5, dashed: bool = False) -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = " stroke-dasharray='4 3'" if dashed else ""
        self.marks.append(f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='{width:g}'{dash}/>")

    def arrow(self, points: Sequence[Point], colour: str = INK, width: float = 1.5) -> None:
        """A line with a head at its end."""
        self.line(points, colour, width)
        (x0, y0), (x1, y1) = points[-2], points[-1]
        length = max(1e-6, ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5)
        dx, dy = (x1 - x0) / length * 8, (y1 - y0) / length * 8
        head = [(x1, y1), (x1 - dx - dy / 2, y1 - dy + dx / 2), (x1 - dx + dy / 2, y1 - dy - dx / 2)]
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in head)
        self.marks.append(f"<polygon points='{corners}' fill='{colour}'/>")

    def dot(self, at: Point, radius: float = 3, colour: str = INK, filled: bool = True) -> None:
        fill = colour if filled else "none"
        self.marks.append(f"<circle cx='{at[0]:.1f}' cy='{at[1]:.1f}' r='{radius:g}' fill='{fill}' stroke='{colour}'/>")

    def band(self, corner: Point, size: Point, colour: str, opacity: float = 0.15) -> None:
        (x, y), (w, h) = corner, size
        self.marks.append(
            f"<rect x='{x:.1f}' y='{y:.1f}' width='{w:.1f}' height='{h:.1f}' fill='{colour}' "
            f"fill-opacity='{opacity:g}'/>"
        )

    def text(self) -> str:
        head = (
            f"<svg xmlns='http://www.w3.org/2000/svg' width='{self.width:g}' height='{self.height:g}' "
            f"viewBox='0 0 {self.width:g} {self.height:g}' role='img'>"
        )
        page = f"<rect width='{self.width:g}' height='{self.height:g}' fill='{PAPER}'/>"
        return "\n".join([head, f"<title>{escape(self.title)}</title>", page, *self.marks, "</svg>", ""])


def curve_chart(
    title: str,
    curves: Mapping[str, Sequence[float]],
    at: Sequence[float],
    labels: tuple[str, str],
    shaded: tuple[float, float] | None = None,
    bands: Mapping[str, Sequence[tuple[float, float]]] | None = None,
) -> str:
    """Curves over one axis, with intervals as bands behind them and a shaded window; the words say what is what."""
    drawing = Drawing(640, 380, title)
    left, right, top, bottom = 70.0, 610.0, 46.0, 320.0
    spans = [end for band in (bands or {}).values() for pair in band for end in pair]
    values = [value for curve in curves.values() for value in curve] + spans
    low, high = min(values), max(values)
    room = (high - low) * 0.08 or 0.1
    low, high = low - room, high + room
    first, last = min(at), max(at)

    def place(x: float, y: float) -> Point:
        across = (x - first) / max(1e-9, last - first)
        return left + across * (right - left), bottom - (y - low) / (high - low) * (bottom - top)

    drawing.words((left, 24), title, 15, anchor="start", bold=True)
    if shaded is not None:
        x0, x1 = place(shaded[0], low)[0], place(shaded[1], low)[0]
        drawing.band((x0, top), (x1 - x0, bottom - top), FAINT, 0.2)
    for step in range(5):
        value = low + (high - low) * step / 4
        y = place(first, value)[1]
        drawing.line([(left, y), (right, y)], "#dfe3ea", 1)
        drawing.words((left - 8, y + 4), f"{value:.3g}", 11, FAINT, "end")
    for x in at:
        drawing.words((place(x, low)[0], bottom + 18), f"{x:g}", 11, FAINT)
    for (name, curve), colour in zip(curves.items(), (BLUE, ORANGE, GREEN, RED, INK), strict=False):
        for x, pair in zip(at, (bands or {}).get(name, ()), strict=False):
            drawing.line([place(x, pair[0]), place(x, pair[1])], colour, 1)
        drawing.line([place(x, y) for x, y in zip(at, curve, strict=True)], colour, 2)
        for x, y in zip(at, curve, strict=True):
            drawing.dot(place(x, y), 3, colour)
    for number, (name, colour) in enumerate(zip(curves, (BLUE, ORANGE, GREEN, RED, INK), strict=False)):
        drawing.words((left + 8 + 130 * number, bottom + 54), name, 12, colour, "start", bold=True)
    drawing.words(((left + right) / 2, bottom + 36), labels[0], 12)
    drawing.words((left - 8, top - 8), labels[1], 12, anchor="start")
    return drawing.text()
