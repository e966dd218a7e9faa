// Expected phasors of LANES tokens at a time along their paths, and their gradients. Never compiled alone. With a, b the
// phases at a segment's ends,
//     mean of exp(i theta) = exp(i (a + b)/2) sin(h)/h,   h = (b - a)/2.
// Phases are carried in half turns, so that reducing them to one period is exact. Where |h| is at most a quarter turn
// sin(h)/h is a polynomial and nothing is divided; a vector of such tokens takes a shorter way to the same bits.
//
//     j = (a c) a path's coordinate   i = (a c f) a phasor   lane: a token within its vector

#pragma once

#include "paths.cpp"

// One phasor's mean along the path of LANES tokens, into by_phasor; with Gradient also what it adds to grad_middle and
// grad_half, from grad_by_phasor. Near: no segment turns by more than half a turn.
template <bool Gradient, bool Near>
static inline void mean_phasor(Scratch& w, size_t place, int cf, int i) {
    const Vec turn = all(w.half_turns[cf]), period = all(w.period[cf]), share = all(float(1 / (PI * (w.K - 1))));
    Vec sum_cos = Vec{}, sum_sin = Vec{}, gc, gs;
    if constexpr (Gradient) gc = load(&w.grad_by_phasor.cosine[i]), gs = load(&w.grad_by_phasor.sine[i]);
#pragma GCC unroll 4  // segments do not wait for one another; clang knows it by the same name
    for (int k = 0; k < w.K - 1; k++, place += size_t(w.J) * BLOCK) {
        Mask odd, odd_half{};
        Vec m = reduced(turn * load(&w.middle[place]), odd), c = cosine_of(m * m), s = sine_over(m * m) * m;
        Vec y = turn * load(&w.half[place]), r = y;  // h = pi y
        if constexpr (!Near) r = reduced(y, odd_half);
        Vec t = r * r, shrink = sine_over(t), slope;  // pi sin(h)/h = sin(pi y)/y, and its derivative by y
        if constexpr (Gradient) slope = 2 * r * sine_over_slope(t);
        if constexpr (!Near) {
            Vec over = period * load(&w.inverse[place]);  // 1 / y
            Mask small = r == y;
            shrink = small ? shrink : shrink * r * over;
            if constexpr (Gradient) slope = small ? slope : (cosine_of(t) * float(PI) - shrink) * over;
            odd ^= odd_half;
        }
        shrink = flipped(shrink, odd);
        sum_cos += c * shrink;
        sum_sin += s * shrink;
        if constexpr (Gradient) {
            w.grad_middle[k] += (c * gs - s * gc) * shrink * turn * (share * float(PI));
            w.grad_half[k] += (c * gc + s * gs) * flipped(slope, odd) * turn * share;
        }
    }
    store(&w.by_phasor.cosine[i], sum_cos * share);
    store(&w.by_phasor.sine[i], sum_sin * share);
}

// The largest |half| of a coordinate's segments, among LANES tokens.
static inline float longest_half(const Scratch& w, size_t place) {
    Vec longest{};
    for (int k = 0; k < w.K - 1; k++, place += size_t(w.J) * BLOCK) {
        Vec half = load(&w.half[place]);
        half = half < 0 ? -half : half;
        longest = half > longest ? half : longest;
    }
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int lane = 0; lane < width; lane++) longest[lane] = std::max(longest[lane], longest[lane + width]);
    return longest[0];
}

// Coefficients of LANES tokens from `first` on; with Gradient also that of their paths, from grad_by_phasor. With
// `same_place` a bearing is one phasor, without a slope.
template <bool Gradient>
static void phasors(Scratch& w, int64_t first, bool same_place) {
    const size_t next_k = size_t(w.J) * BLOCK;
    for (int j = 0; j < w.J; j++) {
        const size_t place = size_t(j) * BLOCK + first;
        const bool one_phasor = same_place && j % w.C != RANGE;
        const float longest = longest_half(w, place);
        if constexpr (Gradient) {
            std::fill(w.grad_middle.begin(), w.grad_middle.end(), Vec{});
            std::fill(w.grad_half.begin(), w.grad_half.end(), Vec{});
        }
        for (int f = 0; f < w.F; f++) {
            const int cf = j % w.C * w.F + f, i = (j * w.F + f) * LANES;
            if (one_phasor) {
                Mask odd;
                Vec m = reduced(w.half_turns[cf] * load(&w.middle[place]), odd);
                store(&w.by_phasor.cosine[i], flipped(cosine_of(m * m), odd));
                store(&w.by_phasor.sine[i], flipped(sine_over(m * m) * m, odd));
            } else if (std::abs(w.half_turns[cf]) * longest <= 0.5f) {
                mean_phasor<Gradient, true>(w, place, cf, i);
            } else {
                mean_phasor<Gradient, false>(w, place, cf, i);
            }
        }
        if constexpr (Gradient)
            for (int k = 0; k < w.K; k++) {  // a breakpoint ends one segment and begins the next
                Vec grad = w.grad_middle[k] - w.grad_half[k];
                if (k) grad += w.grad_middle[k - 1] + w.grad_half[k - 1];
                for (int lane = 0; lane < LANES; lane++) w.grad_path[k * next_k + place + lane] = 0.5 * grad[lane];
            }
    }
    transpose(w.by_phasor.cosine.data(), w.width, LANES, w.by_token.cosine.data());
    transpose(w.by_phasor.sine.data(), w.width, LANES, w.by_token.sine.data());
}
