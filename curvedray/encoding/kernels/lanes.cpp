// Vectors of floats, a token in each lane: sine, cosine, powers of 2 and transposes. Never compiled alone.

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#if defined(__AVX512F__)
constexpr int LANES = 16;
#elif defined(__AVX__)
constexpr int LANES = 8;
#else
constexpr int LANES = 4;
#endif
typedef float Vec __attribute__((vector_size(4 * LANES)));
typedef int32_t Mask __attribute__((vector_size(4 * LANES)));
typedef float Loose __attribute__((vector_size(4 * LANES), aligned(4), may_alias));  // at any float's address

static inline Vec load(const float* p) { return *reinterpret_cast<const Loose*>(p); }
static inline void store(float* p, Vec x) { *reinterpret_cast<Loose*>(p) = x; }
static inline Vec all(float x) { return Vec{} + x; }

// The same vector, loaded once: else a compiler may load it again for each product, which is more than a core can load.
static inline Vec in_register(Vec x) {
#if defined(__x86_64__)
    asm("" : "+v"(x));
#elif defined(__aarch64__)
    asm("" : "+w"(x));
#endif
    return x;
}

// y = r + a whole number of half turns, |r| <= 1/2, for |y| < 2^21; `odd` flips the sign of sin and cos if it is odd.
static inline Vec reduced(Vec y, Mask& odd) {
    const float magic = 12582912.0f;  // 1.5 * 2^23: adding it leaves round(y) in the low bits
    Vec shifted = y + magic;
    odd = reinterpret_cast<Mask>(shifted) << 31;
    return y - (shifted - magic);
}
static inline Vec flipped(Vec x, Mask odd) { return reinterpret_cast<Vec>(reinterpret_cast<Mask>(x) ^ odd); }

template <class... Lower>
static inline Vec polynomial(Vec t, float highest, Lower... lower) {
    Vec sum = all(highest);
    ((sum = sum * t + lower), ...);
    return sum;
}

// sin(pi r)/r, its derivative by t, and cos(pi r), as minimax polynomials of t = r^2 <= 1/4 (errors 2e-7, 9e-8, 2e-10;
// that of sin(pi r) itself 3e-9).
static inline Vec sine_over(Vec t) {
    return polynomial(t, 0.07722224f, -0.5980464f, 2.5500317f, -5.167707f, 3.1415925f);
}
static inline Vec sine_over_slope(Vec t) {
    return polynomial(t, -0.035142228f, 0.3282122f, -1.7977605f, 5.100327f, -5.1677127f);
}
static inline Vec cosine_of(Vec t) {
    return polynomial(t, -0.024396718f, 0.23493756f, -1.3352121f, 4.058709f, -4.934802f, 1.0f);
}

// 2^x for x <= 0, to 2e-8 of it; 2^-100 for all that is less. What is not a number stays so.
static inline Vec power_of_2(Vec x) {
    const float magic = 12582912.0f;  // as in `reduced`
    x = x < -100.0f ? all(-100.0f) : x;
    Vec shifted = x + magic, f = x - (shifted - magic);
    Vec whole = reinterpret_cast<Vec>((reinterpret_cast<Mask>(shifted) << 23) + (127 << 23));
    f = polynomial(f, 1.534581e-4f, 1.3399931e-3f, 9.618489e-3f, 0.055503286f, 0.24022646f, 0.6931472f, 1.0f);
    return whole * f;
}

#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else  // GCC has the other only from version 12 on
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, Mask{__VA_ARGS__})
#endif

// Each pair of rows swaps its off-diagonal halves, at every scale: a LANES x LANES transpose in registers.
template <size_t H, size_t... I>
static inline void swap_halves(Vec& a, Vec& b, std::index_sequence<I...>) {
    Vec low = SHUFFLE(a, b, int32_t(I & H ? LANES + I - H : I)...);
    b = SHUFFLE(a, b, int32_t(I & H ? LANES + I : I + H)...);
    a = low;
}

template <size_t H = 1>
static inline void transpose(Vec (&rows)[LANES]) {
    if constexpr (H < LANES) {
        for (size_t r = 0; r < LANES; r++)
            if (!(r & H)) swap_halves<H>(rows[r], rows[r + H], std::make_index_sequence<LANES>());
        transpose<2 * H>(rows);
    }
}

// (height, width) -> (width, height), both multiples of LANES.
static void transpose(const float* from, int height, int width, float* to) {
    for (int y = 0; y < height; y += LANES)
        for (int x = 0; x < width; x += LANES) {
            Vec rows[LANES];
            for (int r = 0; r < LANES; r++) rows[r] = load(from + (y + r) * width + x);
            transpose(rows);
            for (int r = 0; r < LANES; r++) store(to + (x + r) * height + y, rows[r]);
        }
}
