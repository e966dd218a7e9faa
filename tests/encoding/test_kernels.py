"""The fast path equals the twin, in values and gradients, and a machine that cannot build it still gets its answer."""

import itertools
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes import DOUBLE, kinds_of_mask, lens, noise, orbit, poses, tokens

from curvedray.bench.accuracy import coefficient_error, gradient_error
from curvedray.cameras import Cameras, Lens, TokenGrid
from curvedray.encoding import kernels
from curvedray.encoding.attention import curved_ray_attention
from curvedray.encoding.call import Call
from curvedray.encoding.curved import OFFSETS, breakpoints, default_frequencies, modulate
from curvedray.encoding.geometry import Geometry
from curvedray.encoding.kernels import build, compiled, eager

GRID = TokenGrid(3, 3, 7)  # 21 patches: not a whole number of vectors
needs_kernel = pytest.mark.skipif(compiled.library() is None, reason="no compiled kernel on this machine")


def call(inputs, cameras, grid, backend, **options):
    out = curved_ray_attention(*inputs[:3], cameras, grid, *inputs[3:], backend=backend, **options)
    weight = noise(*out.shape, seed=99).to(out.dtype)
    return out.detach(), torch.autograd.grad((out * weight).sum(), inputs, allow_unused=True)


def worst(ours, exact):
    """Largest difference, against the largest of the exact numbers."""
    return (ours.double() - exact).abs().max().item() / max(exact.abs().max().item(), 1e-6)


scenes = st.fixed_dictionaries(
    {
        "frames": st.integers(1, 3),
        "rows": st.integers(1, 4),
        "cols": st.integers(1, 9),
        "num": st.integers(1, 7),
        "heads": st.integers(1, 3),
        "batch": st.integers(1, 2),
        "batched": st.booleans(),
        "zoom": st.booleans(),
        "coordinates": st.sampled_from([3, 4]),
        "rays": st.integers(1, 3),
        "dim": st.integers(24, 70),
        "xi": st.sampled_from([0.0, 0.5, 1.0, 1.7]),
        "dtype": st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
        "rotation": st.booleans(),
        "values": st.booleans(),
        "seed": st.integers(0, 1000),
    }
)


def check(scene, attention_backend):
    """The backend, in the scene's own precision, against the twin in float64 on the same rounded inputs."""
    grid = TokenGrid(scene["frames"], scene["rows"], scene["cols"])
    fov = torch.full((grid.frames,), 90.0 if scene["xi"] == 0 else 160.0)
    fov = fov - 5 * torch.arange(grid.frames) if scene["zoom"] else fov[0]
    shape = (scene["batch"], grid.frames) if scene["batched"] else (grid.frames,)
    cameras = Cameras(Lens.from_fov(fov, scene["xi"], 96, 64), poses(*shape, seed=scene["seed"]).float())
    rounded = [
        i.to(scene["dtype"] if i.ndim == 4 else torch.float32)
        for i in tokens(grid, scene["dim"], scene["batch"], scene["heads"], scene["seed"])
    ]
    frequencies = default_frequencies(grid, scene["dim"], scene["rays"], scene["coordinates"])
    options = {"breakpoints": scene["num"], "frequencies": frequencies, "rays": scene["rays"]}
    options |= {"query_rotation": scene["rotation"], "value_rotation": scene["values"]}
    ours, our_grads = call([i.requires_grad_() for i in rounded], cameras, grid, attention_backend, **options)
    wide = [i.detach().double().requires_grad_() for i in rounded]
    exact, exact_grads = call(wide, cameras, grid, "reference", **options)
    assert ours.dtype == scene["dtype"]
    close = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}[scene["dtype"]]
    assert worst(ours, exact) < close
    for mine, true in zip(our_grads, exact_grads, strict=True):
        scale = max(1.0, exact_grads[1].abs().max().item())
        assert (mine.double() - true).abs().max() < 25 * close * max(scale, true.abs().max().item())


@needs_kernel
@given(scenes)
@settings(deadline=None, max_examples=40)
def test_the_kernel_is_the_twin(scene):
    check(scene, "fast")


@given(scenes)
@settings(deadline=None, max_examples=15)
def test_eager_is_the_twin(scene):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "library", lambda: None)
        patch.setattr(eager, "CHUNK", 2**14)  # several chunks even here
        check(scene, "fast")


@needs_kernel
@pytest.mark.parametrize("value_rotation", [False, True])
def test_float32_gradients_are_within_the_promise(value_rotation):
    """Relative to the largest gradient, for K = 5 and the default periods of a real grid."""
    assert gradient_error(TokenGrid(2, 15, 26), value_rotation=value_rotation) < 5e-4


@needs_kernel
@pytest.mark.parametrize(("fov", "xi"), [(90.0, 0.0), (150.0, 0.8), (200.0, 1.2)])
def test_coefficients_keep_their_digits(fov, xi):
    """Within 2e-5 of float64 at radii to 20, and within four times what rounding the coordinates alone costs."""
    error, rounding = coefficient_error(Lens.from_fov(fov, xi), TokenGrid(2, 30, 52))
    assert error < 2e-5
    assert error < 4 * rounding


@needs_kernel
@pytest.mark.parametrize("step", [0.0, 1e-12, 1e-8, 1e-3])
def test_a_camera_that_only_turns_and_one_that_hardly_moves(step):
    """Where a camera has not moved the kernel takes a bearing for one phasor; values and gradients must not show it."""
    turning = poses(GRID.frames, seed=5)
    turning[:, :3, 3] *= step / turning[:, :3, 3].norm(dim=-1, keepdim=True).clamp_min(1e-9)
    cameras = Cameras(lens(170.0, 1.2), turning)
    inputs = tokens(GRID, dim=40)
    exact, exact_grads = call([i.requires_grad_() for i in inputs], cameras, GRID, "reference")
    ours, our_grads = call([i.detach().float().requires_grad_() for i in inputs], cameras, GRID, "fast")
    assert worst(ours, exact) < 2e-5
    for mine, true in zip(our_grads, exact_grads, strict=True):
        assert worst(mine, true) < 5e-4


@needs_kernel
@pytest.mark.parametrize("reach", [-40.0, 14.0, 1e3, float("inf"), float("nan")])
def test_radii_beyond_the_kernels_reach_go_the_eager_way(reach):
    cameras, (q, k, v, mu, sigma) = orbit(GRID), (i.float() for i in tokens(GRID))
    geometry = Geometry.between(cameras, GRID, cameras, default_frequencies(GRID, 40), torch.tensor(OFFSETS))
    assert compiled.suits(Call(q, k, v, mu, sigma, geometry, 5))
    assert compiled.reaches(geometry, compiled.Radii.of(mu, sigma, 5))
    mu[0, 3] = reach
    assert not compiled.reaches(geometry, compiled.Radii.of(mu, sigma, 5))


@needs_kernel
@pytest.mark.parametrize("num", [1, 2, 5])
def test_the_kernels_radii_are_the_twins(num):
    mu, sigma = noise(2, 9).float(), noise(2, 9, seed=1).float()
    radii = compiled.Radii.of(mu.expand(2, 9), sigma, num)
    exact = breakpoints(mu.double(), sigma.double(), num).mT
    torch.testing.assert_close(radii.values, exact, rtol=1e-14, atol=0)
    assert (radii.nearest, radii.farthest) == (radii.values.min(), radii.values.max())


@needs_kernel
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 7, 5), (2, 1, 7, 5), (2, 1, 7, 17)])
def test_the_kernel_turns_tokens_as_modulate_does(dtype, shape):
    """Also tokens that do not lie side by side in memory, with channels left over."""
    x = noise(2, 7, 3, 36).to(dtype).transpose(1, 2)
    theta = noise(*shape).float()
    with torch.no_grad():
        ours = kernels.turned(x, theta.cos(), theta.sin())
    assert compiled.suits_turning(x, theta)
    twin = modulate(x, theta.cos(), theta.sin())
    assert ours.dtype == dtype
    torch.testing.assert_close(ours, twin)


@needs_kernel
@pytest.mark.parametrize("loud", [0.1, 30.0])
@pytest.mark.parametrize(("frames", "rows", "cols", "dim"), [(1, 1, 1, 6), (2, 5, 7, 17), (3, 12, 11, 40)])
def test_keys_that_do_not_turn_give_plain_attention(frames, rows, cols, dim, loud):
    """Also with more queries than a panel, more keys than a chunk, and scores that differ by more than floats can."""
    grid = TokenGrid(frames, rows, cols)
    q, k, v, mu, sigma = (i.float() for i in tokens(grid, dim, batch=2, heads=2))
    options = {"frequencies": torch.zeros(3, 1), "rays": 1, "backend": "fast"}
    plain = F.scaled_dot_product_attention(loud * q, k, v)
    ours = curved_ray_attention(loud * q, k, v, orbit(grid), grid, mu, sigma, **options)
    close = {"atol": 1e-5 * max(1.0, loud), "rtol": 1e-4}  # a score's rounding grows with it
    torch.testing.assert_close(ours, plain, **close)
    q[0, 1, -1, 0] = torch.nan
    spoilt = curved_ray_attention(loud * q, k, v, orbit(grid), grid, mu, sigma, **options)
    assert spoilt[0, 1, -1].isnan().all()
    spoilt[0, 1, -1] = ours[0, 1, -1]
    torch.testing.assert_close(spoilt, ours, **close)  # its neighbours in a panel may be scaled once more, or less


@needs_kernel
def test_torchs_default_precision_does_not_matter(monkeypatch):
    cameras, inputs = orbit(GRID), [i.float() for i in tokens(GRID)]
    expected = curved_ray_attention(*inputs[:3], cameras, GRID, *inputs[3:], backend="fast")
    monkeypatch.setattr(compiled, "_KEPT", threading.local())
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        ours = curved_ray_attention(*inputs[:3], cameras, GRID, *inputs[3:], backend="fast")
    finally:
        torch.set_default_dtype(before)
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-4)


@needs_kernel
def test_threads_do_not_change_a_bit():
    cameras, inputs = orbit(GRID), [i.float() for i in tokens(GRID, batch=2, heads=2)]
    geometry = Geometry.between(cameras, GRID, cameras, default_frequencies(GRID, 40), torch.tensor(OFFSETS))
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            radii, layout = compiled.Radii.of(*inputs[3:], 5).values, compiled.Layout.of(geometry)
            keys = compiled.Keys(inputs[1], radii, layout, inputs[2])
            results.append([i.clone() for both in keys.modulated(torch.float32) for i in both])
            results[-1] += keys.attended(inputs[0], inputs[2])
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@needs_kernel
def test_strided_inputs_and_unused_gradients():
    """q, k, v as slices of one projection, as a transformer has them, and a loss that needs k alone."""
    cameras = orbit(GRID)
    packed = noise(1, GRID.tokens, 3, 2, 40).float().permute(2, 0, 3, 1, 4)
    mu, sigma = (i.float() for i in tokens(GRID)[3:])
    k = packed[1].clone().requires_grad_()
    out = curved_ray_attention(packed[0], k, packed[2], cameras, GRID, mu, sigma)
    out.sum().backward()
    whole = [i.contiguous() for i in packed]
    torch.testing.assert_close(out, curved_ray_attention(*whole, cameras, GRID, mu, sigma, backend="reference"))
    assert k.grad.isfinite().all()


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize(("sources", "queries"), [((3,), (2, 2)), ((2, 3), (2,)), ((2, 3), (2, 2))])
def test_queries_may_have_another_lens_and_grid(kernel, sources, queries, monkeypatch):
    """And either side's cameras may be the same for the whole batch."""
    if not kernel:
        monkeypatch.setattr(compiled, "library", lambda: None)
    other_grid = TokenGrid(2, 2, 5)
    q, (_, k, v, mu, sigma) = tokens(other_grid, batch=2)[0].float(), (i.float() for i in tokens(GRID, batch=2))
    cameras = Cameras(lens(), poses(*sources))
    options = {"query_cameras": Cameras(lens(90.0, 0.0), poses(*queries, seed=4)), "query_grid": other_grid}
    options |= {"query_rotation": True, "value_rotation": True}
    ours, twin = (
        curved_ray_attention(q, k, v, cameras, GRID, mu, sigma, backend=backend, **options)
        for backend in ("fast", "reference")
    )
    torch.testing.assert_close(ours, twin, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("value_rotation", [False, True])
def test_what_the_kernel_does_not_take_goes_the_eager_way(value_rotation):
    """float64, values of another width, and phases beyond its sine all still equal the twin."""
    cameras, (q, k, v, mu, sigma) = orbit(GRID), tokens(GRID)
    options = {"value_rotation": value_rotation}
    for inputs in (
        (q, k, v, mu, sigma),
        (q.float(), k.float(), v[..., :38].float(), mu.float(), sigma.float()),
        (q.float(), k.float(), v.float(), mu.float() + 16, 0 * sigma.float()),
    ):
        ours = curved_ray_attention(*inputs[:3], cameras, GRID, *inputs[3:], backend="fast", **options)
        twin = curved_ray_attention(*inputs[:3], cameras, GRID, *inputs[3:], backend="reference", **options)
        torch.testing.assert_close(ours, twin, atol=2e-5, rtol=1e-4)


@needs_kernel
@pytest.mark.slow
@pytest.mark.parametrize("flags", [("-march=native",), ("-mavx2", "-mfma"), ()])
def test_every_width_of_vector_gives_the_same_answer(tmp_path, monkeypatch, flags):
    """The kernel as an older CPU or compiler would have it: 16, 8 and 4 lanes."""
    if "-mavx2" in flags and not torch.backends.cpu.get_cpu_capability().startswith("AVX"):
        pytest.skip("no AVX2 here")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(build, "_cpu_flags", lambda: (flags,))
    kernel = compiled.declared(build.compiled.__wrapped__(compiled.SOURCE, "curved"))
    monkeypatch.setattr(compiled, "library", lambda: kernel)
    inputs = [i.float().requires_grad_() for i in tokens(GRID, heads=2)]
    wide = [i.detach().double().requires_grad_() for i in inputs]
    ours, grads = call(inputs, orbit(GRID), GRID, "fast", value_rotation=True)
    exact, exact_grads = call(wide, orbit(GRID), GRID, "reference", value_rotation=True)
    assert worst(ours, exact) < 2e-5
    assert max(worst(a, b) for a, b in zip(grads, exact_grads, strict=True)) < 5e-4


def test_attention_without_a_kernel_is_the_same_attention(monkeypatch):
    cameras, inputs = orbit(GRID), [i.float() for i in tokens(GRID)]
    expected = curved_ray_attention(*inputs[:3], cameras, GRID, *inputs[3:], backend="reference")
    monkeypatch.setattr(compiled, "library", lambda: None)
    ours = curved_ray_attention(*inputs[:3], cameras, GRID, *inputs[3:])
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


def test_gradients_reach_learned_cameras_through_eager_too():
    inputs = tokens(GRID)
    grads = []
    for backend in ("reference", "fast"):
        pose = poses(3, seed=2).to(DOUBLE).requires_grad_()
        out = curved_ray_attention(*inputs[:3], Cameras(lens(), pose), GRID, *inputs[3:], backend=backend)
        grads.append(torch.autograd.grad(out.square().sum(), pose)[0])
    torch.testing.assert_close(grads[0], grads[1], atol=1e-9, rtol=1e-6)


@pytest.mark.parametrize("kernel", [True, False])
def test_masks_are_the_twins(kernel, monkeypatch):
    """Values and gradients, for every shape of mask, and also where queries are others than keys."""
    if not kernel:
        monkeypatch.setattr(compiled, "library", lambda: None)
        monkeypatch.setattr(eager, "CHUNK", 2**14)
    inputs = [i.float().requires_grad_() for i in tokens(GRID, batch=2, heads=2)]
    wide = [i.detach().double().requires_grad_() for i in inputs]
    for turn, options in itertools.product((False, True), kinds_of_mask(GRID.tokens, GRID.tokens)):
        options = {**options, "value_rotation": turn}
        ours, grads = call(inputs, orbit(GRID), GRID, "fast", **options)
        exact, exact_grads = call(wide, orbit(GRID), GRID, "reference", **options)
        assert worst(ours, exact) < 2e-5
        assert max(worst(a, b) for a, b in zip(grads, exact_grads, strict=True)) < 1e-3


def test_a_learned_mask_gets_its_gradient():
    inputs = [i.float() for i in tokens(GRID)]
    grads = []
    for backend in ("fast", "reference"):
        bias = noise(GRID.tokens, GRID.tokens).float().requires_grad_()
        out = curved_ray_attention(*inputs[:3], orbit(GRID), GRID, *inputs[3:], attn_mask=bias, backend=backend)
        grads.append(torch.autograd.grad(out.square().sum(), bias)[0])
    torch.testing.assert_close(grads[0], grads[1], atol=1e-4, rtol=1e-3)


COMPILED = """
import torch
from curvedray import Cameras, Lens, TokenGrid, curved_ray_attention
from curvedray.encoding.attention import CurvedEncoding
from curvedray.encoding.curved import default_frequencies

grid = TokenGrid(2, 2, 3)
pose = torch.eye(4).repeat(2, 1, 1)
pose[1, 0, 3] = 0.5
cameras = Cameras(Lens.from_fov(120.0, 0.5, 48, 32), pose)
rotations = dict(query_rotation=True, value_rotation=True)
encoding = CurvedEncoding.between(cameras, grid, default_frequencies(grid, 40), **rotations)
torch.manual_seed(0)
q, k, v = torch.randn(3, 1, 2, grid.tokens, 40)
mu, sigma = torch.randn(1, grid.tokens), torch.rand(1, grid.tokens)

def drop_in(q, k, v, mu, sigma):
    return curved_ray_attention(q, k, v, cameras, grid, mu, sigma, is_causal=True, **rotations)

def layer(q, k, v, mu, sigma):
    return encoding.attention(q, k, v, mu, sigma)

for function in (drop_in, layer):
    inputs = [i.clone().requires_grad_() for i in (q, k, v, mu, sigma)]
    graph = torch.compile(function, fullgraph=True, backend="eager")
    pairs = [(f(*inputs), torch.autograd.grad(f(*inputs).sum(), inputs)) for f in (function, graph)]
    torch.testing.assert_close(pairs[0], pairs[1], atol=1e-4, rtol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(graph(*inputs), function(*inputs), atol=1e-5, rtol=1e-4)
print("one graph")
"""


def test_torch_compile_sees_one_graph():
    """In a process of its own, without the shape checks that the test run adds to every function."""
    run = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True)
    assert run.stdout == "one graph\n", run.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler with sanitizers")
def test_the_kernel_touches_nothing_that_is_not_its_own():
    script = Path(__file__).parents[1] / "torture" / "kernel_sanitizers.py"
    run = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout.split()[0]) > 10_000
