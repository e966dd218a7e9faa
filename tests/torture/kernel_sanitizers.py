"""The compiled kernel under the address and undefined-behaviour sanitizers, over odd sizes.

python tests/torture/kernel_sanitizers.py
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

KERNEL = Path(__file__).parents[2] / "curvedray" / "encoding" / "kernels" / "curved.cpp"
CHECKS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
PLAIN = ("-O1", "-g", "-std=c++17", "-pthread", "-Wno-psabi")
WIDTHS = ((), ("-march=native",))  # vectors of 4, and of what this machine has

# Every buffer is exactly as large as the kernel may touch, so that one byte beyond is found.
DRIVER = r"""
#include "@KERNEL@"
#include <cstdio>
#include <cstdlib>
#include <memory>

static double uniform() { return std::rand() / (RAND_MAX + 1.0); }
template <class T> static std::unique_ptr<T[]> filled(int64_t size, double low, double high) {
    std::unique_ptr<T[]> values(new T[size]);
    for (int64_t i = 0; i < size; i++) values[i] = T(low + (high - low) * uniform());
    return values;
}

int main() {
    int cases = 0;
    for (int64_t patches : {1, 3, 4, 5, 15, 16, 17, 63, 64, 65, 130})
    for (int64_t frames : {1, 2})
    for (int64_t K : {2, 3, 9})
    for (int64_t A : {1, 3})
    for (int64_t C : {3, 4})
    for (int64_t F : {1, 2, 7})
    for (int64_t spare : {0, 1, 5})
    for (int variant : {0, 1, 2, 3}) {
        const int64_t batch = 1 + variant % 2, cameras = variant == 3 ? batch : 1, heads = 1 + cases % 2;
        const int64_t tokens = frames * patches, dim = 2 * A * C * F + spare;
        const int64_t size = batch * heads * tokens * dim;
        const int64_t more = cases / 4 % 2 ? size : 0;  // values, turned in every variant of every other case
        auto keys = filled<float>(size, -1, 1), out = filled<float>(size, 0, 0);
        auto grad = filled<float>(size, -1, 1), grad_keys = filled<float>(size, 0, 0);
        auto values = filled<float>(more, -1, 1), out_values = filled<float>(more, 0, 0);
        auto turned_values = filled<float>(more, -1, 1), grad_values = filled<float>(more, 0, 0);
        auto radii = filled<double>(batch * K * tokens, variant == 2 ? 1e-15 : 0.05, variant == 2 ? 1e14 : 20);
        auto grad_radii = filled<double>(batch * K * tokens, 0, 0);
        auto rays = filled<double>(cameras * A * 3 * tokens, -1, 1);
        auto exists = filled<uint8_t>(cameras * A * tokens, 0, variant == 1 ? 0 : 1.99);  // 1: no ray at all
        const double away = variant == 0 ? 0 : 2;  // 0: all cameras at one place
        auto poses = filled<double>(cameras * frames * 12, -away, away);
        auto lenses = filled<double>(cameras * 3, 0.3, 1.5);
        auto frequency = filled<double>(C * F, variant == 2 ? 0 : 0.1, variant == 2 ? 1e-9 : 160);
        Problem p{keys.get(), more ? values.get() : nullptr, radii.get(), rays.get(), exists.get(), poses.get(),
                  lenses.get(), frequency.get(), batch, cameras, heads, tokens, patches, dim, K, A, C, F,
                  {1 + cases % 3, nullptr}};
        curved_modulate(&p, out.get(), out_values.get());
        const int64_t query_frames = 1, queries = 1 + cases % 50, rows = batch * heads * queries;
        auto asked = filled<float>(rows * dim, -1, 1), answers = filled<float>(rows * dim, 0, 0);
        auto logsumexp = filled<float>(rows, 0, 0);
        const int64_t n = A * C * F;
        auto own = filled<float>(cameras * queries * n, -1, 1);
        Frames f{{asked.get(), {heads * queries * dim, queries * dim, dim}},
                 {keys.get(), {heads * tokens * dim, tokens * dim, dim}},
                 answers.get(), logsumexp.get(), out.get(), out_values.get(), own.get(), own.get(), cameras,
                 cases % 2, cases / 2 % 2, query_frames, queries};
        curved_attention(&p, &f);
        curved_modulate_backward(&p, grad.get(), turned_values.get(), grad_keys.get(), grad_values.get(),
                                 grad_radii.get());
        auto cosine = filled<float>(cameras * tokens * n, -1, 1), sine = filled<float>(cameras * tokens * n, -1, 1);
        curved_turn(keys.get(), cosine.get(), sine.get(), batch, cameras, heads, tokens, n, dim, out.get());
        auto mu = filled<float>(batch * tokens, -3, 3), sigma = filled<float>(batch * tokens, -1, 1);
        double ends[2];
        curved_radii(mu.get(), sigma.get(), batch, tokens, K == 2 ? cases % 2 + 1 : K, radii.get(), ends);
        cases++;
    }
    std::printf("%d\n", cases);
}
"""


def run() -> int:
    """How many cases ran, both forward and backward. A finding is a RuntimeError with the sanitizer's own words."""
    compiler = shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")
    if compiler is None:
        raise RuntimeError("no C++ compiler, so no sanitizers")
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "driver.cpp"), Path(folder, "driver")
        source.write_text(DRIVER.replace("@KERNEL@", str(KERNEL)))
        for width in WIDTHS:
            built = subprocess.run(
                [compiler, *CHECKS, *PLAIN, *width, source, "-o", program], capture_output=True, text=True
            )
            if built.returncode:
                raise RuntimeError(f"the driver does not build: {built.stderr[:2000]}")
            found = subprocess.run([program], capture_output=True, text=True, env=dict(os.environ), timeout=600)
            if found.returncode:
                raise RuntimeError(f"a finding, with flags {width}:\n{found.stderr[:4000]}")
            total += int(found.stdout)
    return total


if __name__ == "__main__":
    print(f"{run()} cases, nothing found")
    sys.exit(0)
