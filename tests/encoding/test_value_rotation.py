"""Laws of value rotation: values turned as their keys, outputs turned back by the query's own bearing."""

import math

import pytest
import torch
import torch.nn.functional as F
from reference import bounded_coordinate, softmax_attention, token_phasors
from scenes import DOUBLE, kinds_of_mask, lens, orbit, poses, tokens

from curvedray.cameras import Cameras, TokenGrid
from curvedray.encoding.attention import CurvedEncoding, curved_ray_attention
from curvedray.encoding.curved import OFFSETS, breakpoints, lens_coordinates
from curvedray.encoding.geometry import Geometry
from curvedray.errors import InputError

GRID = TokenGrid(3, 2, 3)
FREQUENCIES = torch.tensor([[1.0, 7.0], [2.0, 9.0], [0.5, 3.0]], dtype=DOUBLE)
WITH_DEPTH = torch.cat([FREQUENCIES, FREQUENCIES[:1] / 2])
RANGE = 2  # its place among the coordinates
BOTH = {"query_rotation": True, "value_rotation": True}


def call(inputs, cameras, grid=GRID, **options):
    q, k, v, mu, sigma = inputs
    return curved_ray_attention(q, k, v, cameras, grid, mu, sigma, **{"backend": "reference", **BOTH, **options})


def pairs(x, phasors):
    """Channels as complex numbers, one for each phasor, and those that no phasor turns."""
    return torch.complex(x[..., :phasors], x[..., phasors : 2 * phasors]), x[..., 2 * phasors :]


@pytest.mark.parametrize(
    ("backend", "dtype", "close"),
    [("reference", DOUBLE, 1e-10), ("fast", DOUBLE, 1e-10), ("fast", torch.float32, 2e-5)],
)
def test_still_cameras_and_known_radii_are_relative_rotary_attention(backend, dtype, close):
    """score(i, j) = Re conj(q_i) k_j e^(i w (x_j - x_i)), out_i = sum_j softmax(score) v_j e^(i w (x_j - x_i)).

    x is a patch corner's (u, v, range, depth) in the one camera there is, but a query's own range counts as 0.
    """
    still = Cameras(lens(), poses(1, seed=3).expand(GRID.frames, 4, 4))
    q, k, v, mu, sigma = tokens(GRID, dim=50, heads=2)
    inputs = [i.to(dtype) for i in (q, k, v, mu, 0 * sigma)]
    ours = call(inputs, still, frequencies=WITH_DEPTH, backend=backend)

    rays, _ = still.rays(GRID, torch.tensor(OFFSETS, dtype=DOUBLE))
    place = lens_coordinates(rays, still.lens).flatten(0, 1)  # token, ray, coordinate
    key_place, query_place = place.clone(), place.clone()
    key_place[..., RANGE], query_place[..., RANGE] = mu[0].exp()[:, None], 0.0
    apart = (key_place[None] - query_place[:, None])[..., None] * WITH_DEPTH  # query, key, ray, coordinate, frequency
    turn = torch.exp(1j * apart.flatten(2))
    (q2, q_rest), (k2, k_rest), (v2, v_rest) = (pairs(x, turn.shape[-1]) for x in (q, k, v))
    score = torch.einsum("bhid,bhjd,ijd->bhij", q2.conj(), k2, turn).real + q_rest @ k_rest.mT
    weight = (score / math.sqrt(50)).softmax(-1)
    out = torch.einsum("bhij,bhjd,ijd->bhid", weight.to(turn.dtype), v2, turn)
    expected = torch.cat([out.real, out.imag, weight @ v_rest], -1)
    torch.testing.assert_close(ours.double(), expected, atol=close, rtol=0)


def test_the_whole_in_plain_loops():
    """Moving cameras and wide intervals: values take their keys' expected phasors, outputs the inverse of a bearing."""
    cameras = orbit(GRID)
    q, k, v, mu, sigma = tokens(GRID)
    ours = call((q, k, v, mu, sigma), cameras, breakpoints=4, frequencies=FREQUENCIES, query_rotation=False)[0, 0]
    rays, exists = cameras.rays(GRID, torch.tensor(OFFSETS, dtype=DOUBLE))
    assert exists.all()
    radii, between = breakpoints(mu[0], sigma[0], 4).tolist(), cameras.query_from_source()
    one_lens = (cameras.lens.focal.tolist(), cameras.lens.size, cameras.lens.xi.item())

    def turned(x, phasors):
        out = list(x)
        for i, (c, s) in enumerate(phasors):
            a, b = x[i], x[18 + i]
            out[i], out[18 + i] = a * c - b * s, a * s + b * c
        return out

    for query in (0, 7, 17):
        frame = query // GRID.patches
        keys, values = [], []
        for token in range(GRID.tokens):
            source, patch = divmod(token, GRID.patches)
            place = (rays[source, patch].tolist(), radii[token], between[frame, source].tolist())
            phasors = token_phasors(*place, *one_lens, FREQUENCIES.tolist())
            keys.append(turned(k[0, 0, token].tolist(), phasors))
            values.append(turned(v[0, 0, token].tolist(), phasors))
        out = softmax_attention(q[0, 0, query].tolist(), keys, values)
        back = []
        for ray in rays[frame, query % GRID.patches].tolist():
            for coordinate, x in enumerate(bounded_coordinate(ray, *one_lens)):
                own = 0.0 if coordinate == RANGE else x
                back += [(math.cos(w * own), -math.sin(w * own)) for w in FREQUENCIES[coordinate].tolist()]
        assert ours[query].tolist() == pytest.approx(turned(out, back), abs=1e-8)


def test_a_token_that_attends_to_itself_alone_gets_its_value_back():
    """Whatever its interval: its own camera sees a ray as one point. Only range is turned: a query has none."""
    cameras, inputs = orbit(GRID), tokens(GRID, dim=50)
    v = inputs[2]
    alone = torch.eye(GRID.tokens, dtype=torch.bool)
    out = call(inputs, cameras, frequencies=WITH_DEPTH, attn_mask=alone)
    (ours, ours_rest), (value, value_rest) = (pairs(x, 24) for x in (out, v))
    torch.testing.assert_close(ours_rest, value_rest)
    ours, value = (x.unflatten(-1, (3, 4, 2)) for x in (ours, value))
    torch.testing.assert_close(ours[..., [0, 1, 3], :], value[..., [0, 1, 3], :])
    assert (ours[..., RANGE, :] - value[..., RANGE, :]).abs().max() > 0.1


@pytest.mark.parametrize(("dtype", "close"), [(DOUBLE, 1e-10), (torch.float32, 3e-5)])
@pytest.mark.parametrize("backend", ["reference", "fast"])
def test_the_world_frame_does_not_matter(dtype, close, backend):
    here, inputs = orbit(GRID), [i.to(dtype) for i in tokens(GRID)]
    moved = Cameras(here.lens, poses(1, seed=9, turn=2.0, move=20.0) @ here.world_from_camera)
    a, b = (call(inputs, cameras, backend=backend) for cameras in (here, moved))
    torch.testing.assert_close(a, b, atol=close, rtol=0)
    assert (a - call(inputs, here, value_rotation=False)).abs().max() > 0.1


def test_values_need_not_be_as_wide_as_keys_but_wide_enough():
    cameras, (q, k, v, mu, sigma) = orbit(GRID), tokens(GRID)
    wide = call((q, k, v, mu, sigma), cameras, frequencies=FREQUENCIES)
    torch.testing.assert_close(call((q, k, v[..., :37], mu, sigma), cameras, frequencies=FREQUENCIES), wide[..., :37])
    with pytest.raises(InputError, match="at least 36 channels") as error:
        call((q, k, v[..., :35], mu, sigma), cameras, frequencies=FREQUENCIES)
    assert error.value.name == "v"
    call((q, k, v[..., :35], mu, sigma), cameras, frequencies=FREQUENCIES, value_rotation=False)


def test_cross_attention_is_rows_of_self_attention():
    cameras, (q, k, v, mu, sigma) = orbit(GRID), tokens(GRID)
    whole = call((q, k, v, mu, sigma), cameras)
    part = call(
        (q[:, :, GRID.patches :], k, v, mu, sigma),
        cameras,
        query_cameras=cameras[1:],
        query_grid=TokenGrid(2, GRID.rows, GRID.cols),
    )
    torch.testing.assert_close(part, whole[:, :, GRID.patches :])


def test_no_frequency_turns_nothing_under_any_mask():
    inputs = tokens(GRID, batch=2, heads=2)
    for options in kinds_of_mask(GRID.tokens, GRID.tokens):
        ours = call(inputs, orbit(GRID), frequencies=0 * FREQUENCIES, **options)
        torch.testing.assert_close(ours, F.scaled_dot_product_attention(*inputs[:3], **options))


def test_gradients_are_those_of_finite_differences_also_to_frequencies():
    grid = TokenGrid(2, 1, 2)
    cameras, inputs = orbit(grid), tokens(grid, dim=20)
    frequencies = torch.tensor([[3.0], [2.0], [1.0]], dtype=DOUBLE)
    tensors = [i.requires_grad_() for i in (*inputs, frequencies)]
    for backend in ("reference", "fast"):

        def attend(*tensors, backend=backend):
            return call(tensors[:5], cameras, grid, frequencies=tensors[5], backend=backend)

        assert torch.autograd.gradcheck(attend, tensors, fast_mode=True)


def test_one_encoding_serves_many_layers():
    cameras, frequencies = orbit(GRID), FREQUENCIES.float()
    encoding = CurvedEncoding.between(cameras, GRID, frequencies, breakpoints=3, value_rotation=True)
    for seed in (5, 15):
        inputs = [i.float() for i in tokens(GRID, seed=seed)]
        options = {"breakpoints": 3, "frequencies": frequencies, "query_rotation": False, "backend": "auto"}
        torch.testing.assert_close(encoding.attention(*inputs), call(inputs, cameras, **options))


def test_a_ray_that_does_not_exist_turns_nothing_back():
    """Nor did it turn a value: such channels are those of plain attention's values."""
    grid = TokenGrid(2, 5, 6)
    cameras = Cameras(lens(240.0, 1.6), poses(2))
    geometry = Geometry.between(cameras, grid, cameras, FREQUENCIES, torch.tensor(OFFSETS, dtype=DOUBLE))
    exists = geometry.exists.flatten(0, 1)
    assert exists.any(-1).logical_not().any()
    inputs = tokens(grid)
    out = call(inputs, cameras, grid, frequencies=FREQUENCIES, attn_mask=torch.eye(grid.tokens, dtype=torch.bool))
    ours, value = (pairs(x, 18)[0][0, 0].unflatten(-1, (3, 6))[~exists] for x in (out, inputs[2]))
    torch.testing.assert_close(ours, value)
