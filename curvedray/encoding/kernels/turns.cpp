// A row of channels turned by phasors, pairs being (i, n + i), and the gradients of that. Never compiled alone.

#pragma once

#include <algorithm>
#include <cstdint>

#include "lanes.cpp"

// Back: by the conjugate phasors.
template <bool Back = false>
static void turn_key(const float* __restrict key, const float* __restrict c, const float* __restrict s, int n,
                     int64_t dim, float* __restrict out) {
    const float sign = Back ? -1.0f : 1.0f;
    for (int start = 0; start < n && n >= LANES; start += LANES) {
        const int i = std::min(start, n - LANES);  // the last vector overlaps the one before it
        Vec x = load(key + i), y = load(key + n + i), cosine = load(c + i), sine = sign * load(s + i);
        store(out + i, x * cosine - y * sine);
        store(out + n + i, x * sine + y * cosine);
    }
    for (int i = 0; i < n && n < LANES; i++) {
        out[i] = key[i] * c[i] - key[n + i] * sign * s[i];
        out[n + i] = key[i] * sign * s[i] + key[n + i] * c[i];
    }
    for (int64_t i = 2 * n; i < dim; i++) out[i] = key[i];
}

static void add_coefficient_gradient(const float* __restrict key, const float* __restrict grad, int n,
                                     float* __restrict gc, float* __restrict gs) {
    for (int i = 0; i < n; i++) {
        gc[i] += key[i] * grad[i] + key[n + i] * grad[n + i];
        gs[i] += key[i] * grad[n + i] - key[n + i] * grad[i];
    }
}

static void add_key_gradient(const float* __restrict grad, const float* __restrict c, const float* __restrict s, int n,
                             int64_t dim, float* __restrict out) {
    for (int i = 0; i < n; i++) {
        out[i] += grad[i] * c[i] + grad[n + i] * s[i];
        out[n + i] += grad[n + i] * c[i] - grad[i] * s[i];
    }
    for (int64_t i = 2 * n; i < dim; i++) out[i] += grad[i];
}
