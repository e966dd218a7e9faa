"""What curved-ray attention costs beside plain attention called once per query frame, and how the cost grows.

Sizes are Wan's: 21 frames of 30 x 52 tokens, one head of 192. A few query frames stand for all 21: each does the same.
"""

import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import torch
import torch.nn.functional as F
from torch import Tensor

from curvedray.bench.accuracy import DIM, coefficient_error, gradient_error, intervals, moving_cameras
from curvedray.bench.harness import Measurement, interleaved, peak_growth, ratio, threads
from curvedray.cameras import Lens, TokenGrid
from curvedray.encoding.attention import CurvedEncoding, curved_ray_attention
from curvedray.encoding.call import Call
from curvedray.encoding.curved import default_frequencies
from curvedray.encoding.kernels import compiled, eager

ROTATED = "queries and values turned too"
REAL, SMALL, TINY = TokenGrid(21, 30, 52), TokenGrid(8, 15, 26), TokenGrid(5, 8, 12)


@dataclass(frozen=True)
class Effort:
    """How many rounds, and how many query frames stand for the real size."""

    rounds: int = 7
    frames: int = 4
    small_rounds: int = 15


QUICK = Effort(rounds=3, frames=1, small_rounds=5)


class Scene:
    """Inputs of one attention call, and the ways to make it."""

    def __init__(self, grid: TokenGrid, frames: int | None = None, num: int = 5):
        self.grid, self.num = grid, num
        self.queries = TokenGrid(frames or grid.frames, grid.rows, grid.cols)
        generator = torch.Generator().manual_seed(0)
        self.cameras = moving_cameras(grid.frames, Lens.from_fov(150.0, 0.8))
        self.seen = self.cameras[: self.queries.frames]
        self.q = torch.randn(1, 1, self.queries.tokens, DIM, generator=generator)
        self.k, self.v = torch.randn(2, 1, 1, grid.tokens, DIM, generator=generator)
        self.mu, self.sigma = intervals(grid.tokens)

    @property
    def inputs(self) -> list[Tensor]:
        return [self.q, self.k, self.v, self.mu, self.sigma]

    @property
    def operations(self) -> float:
        """Multiplications and additions of the two matrix products."""
        return 4.0 * self.queries.tokens * self.grid.tokens * DIM

    def plain(self, q: Tensor, k: Tensor, v: Tensor, *_: Tensor) -> Tensor:
        frames = q.chunk(self.queries.frames, -2)
        return torch.cat([F.scaled_dot_product_attention(frame, k, v) for frame in frames], -2)

    def curved(self, q: Tensor, k: Tensor, v: Tensor, mu: Tensor, sigma: Tensor, *, rotations: bool = False) -> Tensor:
        """The drop-in call, which makes its encoding."""
        call = partial(curved_ray_attention, breakpoints=self.num, query_cameras=self.seen, query_grid=self.queries)
        call = partial(call, query_rotation=rotations, value_rotation=rotations)
        return call(q, k, v, self.cameras, self.grid, mu, sigma, backend="fast")

    def rotated(self, q: Tensor, k: Tensor, v: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
        """The same with queries and values turned too."""
        return self.curved(q, k, v, mu, sigma, rotations=True)

    def encoded(self, q: Tensor, k: Tensor, v: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
        """A block's call, whose encoding was made once for the pass."""
        return self.encoding.attention(q, k, v, mu, sigma)

    def rotated_encoded(self, q: Tensor, k: Tensor, v: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
        return self.rotated_encoding.attention(q, k, v, mu, sigma)

    def eager(self, q: Tensor, k: Tensor, v: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
        return eager.attention(Call(q, k, v, mu, sigma, self.encoding.geometry, self.num))

    @cached_property
    def encoding(self) -> CurvedEncoding:
        return self._encoding(rotations=False)

    @cached_property
    def rotated_encoding(self) -> CurvedEncoding:
        return self._encoding(rotations=True)

    def _encoding(self, *, rotations: bool) -> CurvedEncoding:
        make = partial(CurvedEncoding.between, breakpoints=self.num, query_cameras=self.seen, query_grid=self.queries)
        make = partial(make, query_rotation=rotations, value_rotation=rotations)
        return make(self.cameras, self.grid, default_frequencies(self.grid, DIM), backend="fast")

    def forward(self, attend: Callable[..., Tensor]) -> Callable[[], Tensor]:
        return partial(torch.no_grad()(attend), *self.inputs)

    def both_ways(self, attend: Callable[..., Tensor]) -> Callable[[], object]:
        inputs = [i.clone().requires_grad_() for i in self.inputs]

        def run() -> object:
            return torch.autograd.grad(attend(*inputs).sum(), inputs, allow_unused=True)

        return run


def measure(quick: bool = False) -> Iterator[Measurement]:
    """The table of this benchmark, one measurement at a time."""
    effort = QUICK if quick else Effort()
    if compiled.library() is None:
        yield Measurement("compiled kernel available (0: everything below is the eager form)", 0.0, "", 1.0, True)
    yield from real_size(effort)
    yield from small_size(effort)
    yield from encoding_at_hand(effort)
    yield from digits()
    yield from threading(effort)
    yield from memory(quick)
    yield from growth(effort)


def real_size(effort: Effort) -> Iterator[Measurement]:
    scene = Scene(REAL, effort.frames)
    size = f"21 x 30 x 52 tokens, K = 5, {effort.frames} query frames"
    ways = {name: scene.forward(way) for name, way in (*three(scene), ("eager", scene.eager))}
    times = interleaved(ways, effort.rounds)
    what = f"fast / plain attention, forward, {size}"
    yield Measurement(what, ratio(times, "fast", "plain"), target=1.06)
    yield Measurement(f"{what}, {ROTATED}", ratio(times, "rotated", "plain"), target=1.06)
    yield Measurement(f"eager / plain attention, forward, {size}", ratio(times, "eager", "plain"), target=1.7)
    yield from floor(scene, times)
    both = interleaved({n: scene.both_ways(way) for n, way in three(scene)}, max(2, effort.rounds // 2))
    what = f"fast / plain attention, forward + backward, {size}"
    yield Measurement(what, ratio(both, "fast", "plain"), target=1.10)
    yield Measurement(f"{what}, {ROTATED}", ratio(both, "rotated", "plain"), target=1.10)


def two(scene: Scene) -> Iterator[tuple[str, Callable[..., Tensor]]]:
    yield "plain", scene.plain
    yield "fast", scene.curved


def three(scene: Scene) -> Iterator[tuple[str, Callable[..., Tensor]]]:
    yield from two(scene)
    yield "rotated", scene.rotated


def small_size(effort: Effort) -> Iterator[Measurement]:
    scene = Scene(SMALL)
    for name, wrap in (("forward", scene.forward), ("forward + backward", scene.both_ways)):
        times = interleaved({n: wrap(way) for n, way in three(scene)}, effort.small_rounds)
        what = f"fast / plain attention, {name}, 8 x 15 x 26 tokens"
        yield Measurement(what, ratio(times, "fast", "plain"), target=1.25)
        yield Measurement(f"{what}, {ROTATED}", ratio(times, "rotated", "plain"), target=1.25)


def encoding_at_hand(effort: Effort) -> Iterator[Measurement]:
    """A block's call, on one thread, where fixed costs weigh most: its cameras were seen to before."""
    for grid, target in ((SMALL, 1.10), (TINY, 1.30)):
        scene = Scene(grid)
        calls = {
            "plain": scene.forward(scene.plain),
            "encoded": scene.forward(scene.encoded),
            "rotated": scene.forward(scene.rotated_encoded),
        }
        with threads(1):
            times = interleaved(calls, effort.small_rounds * SMALL.tokens // grid.tokens, time.process_time)
        size = f"{grid.frames} x {grid.rows} x {grid.cols} tokens"
        what = f"fast, encoding at hand / plain attention, forward, one thread, processor time, {size}"
        yield Measurement(what, ratio(times, "encoded", "plain"), target=target)
        yield Measurement(f"{what}, {ROTATED}", ratio(times, "rotated", "plain"), target=target)


def digits() -> Iterator[Measurement]:
    if compiled.library() is None:
        return
    pairs = [coefficient_error(Lens.from_fov(fov, xi), TokenGrid(2, 30, 52)) for fov, xi in ((90.0, 0.0), (150.0, 0.8))]
    yield Measurement("largest coefficient error against float64, radii to 20", max(e for e, _ in pairs), "", 2e-5)
    yield Measurement("the same, over what rounding coordinates alone costs", max(e / r for e, r in pairs), target=4.0)
    grid = TokenGrid(2, 15, 26)
    yield Measurement("largest gradient error, relative", gradient_error(grid), "", 5e-4)
    yield Measurement(
        f"largest gradient error, relative, {ROTATED}", gradient_error(grid, value_rotation=True), "", 5e-4
    )


def threading(effort: Effort) -> Iterator[Measurement]:
    """How much two threads gain over one, beside what plain attention gains."""
    if torch.get_num_threads() < 2:
        return
    scene = Scene(REAL, max(1, effort.frames // 2))

    def with_threads(count: int, way: Callable[[], Tensor]) -> Tensor:
        with threads(count):
            return way()

    calls = {
        f"{name}{count}": partial(with_threads, count, scene.forward(way))
        for name, way in two(scene)
        for count in (1, 2)
    }
    times = interleaved(calls, effort.rounds)
    gains = {name: ratio(times, f"{name}1", f"{name}2") for name in ("plain", "fast")}
    yield Measurement("two threads against one, plain attention", gains["plain"])
    share = gains["fast"] / gains["plain"]
    yield Measurement("two threads against one, fast, as a share of plain's gain", share, target=0.95, at_least=True)


def memory(quick: bool) -> Iterator[Measurement]:
    frames = 2 if quick else REAL.frames
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        grown = pool.apply(_memory, (frames,))
    if grown is not None:
        what = f"peak memory above inputs, forward + backward, 21 x 30 x 52 tokens, {frames} query frames"
        yield Measurement(what, grown, "MiB", 400.0)


def _memory(frames: int) -> float | None:
    """In a process of its own: warmed up on a small scene, then the real one."""
    small = Scene(TokenGrid(2, 4, 4))
    small.both_ways(small.curved)()
    scene = Scene(REAL, frames)
    return peak_growth(scene.both_ways(scene.curved))


def floor(scene: Scene, times: dict[str, list[float]]) -> Iterator[Measurement]:
    """What matrix products alone reach on this machine, and how near attention comes."""
    side = 2048
    a, b = torch.randn(2, side, side)
    sgemm = 2.0 * side**3 / min(interleaved({"sgemm": lambda: a @ b}, 7)["sgemm"]) / 1e9
    yield Measurement("sgemm, 2048 x 2048, best of 7", sgemm, "GFLOP/s")
    for name in ("plain", "fast"):
        rate = scene.operations / statistics.median(times[name]) / 1e9
        yield Measurement(f"{name} attention's matrix products, of sgemm's rate", 100 * rate / sgemm, "%")


def growth(effort: Effort) -> Iterator[Measurement]:
    """The ratio to plain attention as frames, patches and breakpoints grow."""
    grids = [TokenGrid(4, 15, 26), TokenGrid(16, 15, 26), TokenGrid(4, 22, 38), TokenGrid(4, 30, 52)]
    scenes = [(f"{g.frames} x {g.rows} x {g.cols} tokens, K = 5", Scene(g)) for g in grids]
    scenes += [(f"8 x 15 x 26 tokens, K = {num}", Scene(SMALL, num=num)) for num in (1, 2, 3, 5, 9)]
    for name, scene in scenes:
        times = interleaved({n: scene.forward(way) for n, way in two(scene)}, effort.rounds)
        yield Measurement(f"growth: fast / plain attention, forward, {name}", ratio(times, "fast", "plain"))
