// Where a query frame sees the tokens: the path of each along its rays, and the gradient of one. Never compiled alone.
// Tokens lie side by side, geometry is in double precision.
//
//     b batch   h head   n token   s source frame   a ray   c coordinate   f frequency   k breakpoint   d channel
//     j = (a c) a path's coordinate   i = (a c f) a phasor

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "lanes.cpp"
#include "threads.cpp"

constexpr int BLOCK = 64;  // tokens whose geometry is held at once
constexpr int RANGE = 2;   // its place among the coordinates (u, v, range, depth)
constexpr double PI = 3.14159265358979323846;
constexpr double SMALLEST_SQUARE = 1e-36;  // of a length; still a float. compiled.py keeps radii well above it

// The same layout as Problem in compiled.py.
extern "C" struct Problem {
    const float* keys;        // b h n d
    const float* values;      // the same, or null: values are not turned
    const double* radii;      // b k n
    const double* rays;       // bc a 3 n, bc being 1 or b
    const uint8_t* exists;    // bc a n
    const double* poses;      // bc s 12, rows of [R | t] from each source camera to the query's
    const double* lenses;     // bc 3: fx/W, fy/H, xi
    const double* frequency;  // c f, radians per unit
    int64_t batch, camera_batch, heads, tokens, patches, dim, breakpoints, rays_per_patch, coordinates, frequencies;
    Threads threads;
};

struct Pair {  // what belongs to cos and to sin
    std::vector<float> cosine, sine;
    explicit Pair(size_t size) : cosine(size), sine(size) {}
};

struct Scratch {
    const int K, A, C, F, J, n, width;           // width: n rounded up to whole vectors
    std::vector<double> path, grad_path;         // k j block: coordinates
    std::vector<float> middle, half, inverse;    // k j block, of a segment: middle, half its length, 1 / that
    std::vector<float> half_turns, period;       // c f: omega / pi and pi / omega
    Pair by_phasor, by_token;                    // i lane; lane i: a few tokens' coefficients
    Pair grad_by_phasor, grad_by_token;          // the same, their gradients
    std::vector<Vec> grad_middle, grad_half;     // k

    explicit Scratch(const Problem& p)
        : K(p.breakpoints), A(p.rays_per_patch), C(p.coordinates), F(p.frequencies), J(A * C), n(J * F),
          width((n + LANES - 1) / LANES * LANES), path(size_t(K) * J * BLOCK), grad_path(path.size()),
          middle(path.size()), half(path.size()), inverse(path.size()), half_turns(C * F), period(C * F),
          by_phasor(width * LANES), by_token(width * LANES), grad_by_phasor(width * LANES),
          grad_by_token(width * LANES), grad_middle(K), grad_half(K) {
        for (int i = 0; i < C * F; i++) {
            double w = p.frequency[i];
            half_turns[i] = float(w / PI);
            period[i] = w != 0 ? float(PI / w) : 0.0f;
        }
    }
};

struct Place {  // a run of tokens of one batch entry and one source frame
    const double *radii, *rays, *pose, *lens;
    const uint8_t* exists;
    int64_t step, count;  // tokens between rows of radii and rays; tokens in the run

    // Whether the query stands where the source stood, to a part in 10^9 of the nearest radius. Then a ray keeps its
    // bearing along its whole length, however the camera has turned, and only its range has a path.
    bool same_place() const {
        double nearest = radii[0], away = std::max({std::abs(pose[3]), std::abs(pose[7]), std::abs(pose[11])});
        for (int64_t t = 0; t < count; t++) nearest = std::min(nearest, radii[t]);  // the first breakpoint's: the least
        return away <= 1e-9 * nearest;
    }
};

// 1 / sqrt(x); 0 where x is 0, or next to it. A float's guess and one step of third order make a double of it: roots
// and quotients of doubles would be what geometry spends most of its time on.
static inline double inverse_root(double x) {
    double y = 1.0f / std::sqrt(float(std::max(x, SMALLEST_SQUARE))), error = 1 - x * y * y;
    return x > SMALLEST_SQUARE ? y + y * error * (0.5 + 0.375 * error) : 0.0;
}

// A unit ray of every token in the run, in the query's frame.
static inline void turn_rays(const Place& at, int a, double (&to)[3][BLOCK]) {
    const double *x = at.rays + a * 3 * at.step, *y = x + at.step, *z = y + at.step;
    for (int i = 0; i < 3; i++) {
        const double* R = at.pose + 4 * i;
        for (int64_t t = 0; t < at.count; t++) to[i][t] = R[0] * x[t] + R[1] * y[t] + R[2] * z[t];
    }
}

// The path of every token in the run: (u, v, range, depth) at each breakpoint, zero where there is no ray.
static void walk(const Place& at, Scratch& w) {
    const double *P = at.pose, fx = at.lens[0], fy = at.lens[1], xi = at.lens[2];
    double ray[3][BLOCK], depth[BLOCK], keep[BLOCK];
    for (int a = 0; a < w.A; a++) {
        turn_rays(at, a, ray);
        for (int64_t t = 0; t < at.count; t++) keep[t] = at.exists[a * at.step + t] ? 1.0 : 0.0;
        for (int k = 0; k < w.K; k++) {
            const double* radius = at.radii + k * at.step;
            double* to = &w.path[size_t(k * w.J + a * w.C) * BLOCK];
            for (int64_t t = 0; t < at.count; t++) {
                double r = radius[t], x = P[3] + r * ray[0][t], y = P[7] + r * ray[1][t], z = P[11] + r * ray[2][t];
                double square = x * x + y * y + z * z, distance = square * inverse_root(square);
                double px = fx * x, py = fy * y, beta = z + xi * distance;
                double scale = keep[t] * inverse_root(px * px + py * py + beta * beta);
                to[t] = px * scale;
                to[BLOCK + t] = py * scale;
                to[2 * BLOCK + t] = distance * keep[t];
                depth[t] = beta * scale;
            }
            if (w.C == 4) std::memcpy(to + 3 * BLOCK, depth, sizeof(double) * at.count);
        }
    }
    for (int kj = 0; kj < (w.K - 1) * w.J; kj++) {
        const double *here = &w.path[size_t(kj) * BLOCK], *next = here + size_t(w.J) * BLOCK;
        float *middle = &w.middle[size_t(kj) * BLOCK], *half = &w.half[size_t(kj) * BLOCK];
        float* inverse = &w.inverse[size_t(kj) * BLOCK];
        for (int64_t t = 0; t < at.count; t++) {
            middle[t] = float(0.5 * (next[t] + here[t]));
            half[t] = float(0.5 * (next[t] - here[t]));
            inverse[t] = half[t] != 0 ? 1.0f / (half[t] != 0 ? half[t] : 1.0f) : 0.0f;
        }
    }
}

// From coordinates to log-radii: grad_log_radii[k, n] += r_k * ray . dL/dX.
static void walk_backward(const Place& at, const Scratch& w, double* grad_log_radii) {
    const double *P = at.pose, fx = at.lens[0], fy = at.lens[1], xi = at.lens[2];
    double ray[3][BLOCK];
    for (int a = 0; a < w.A; a++) {
        turn_rays(at, a, ray);
        const uint8_t* exists = at.exists + a * at.step;
        for (int k = 0; k < w.K; k++) {
            const double* radius = at.radii + k * at.step;
            const double* from = &w.grad_path[size_t(k * w.J + a * w.C) * BLOCK];
            const double* from_depth = w.C == 4 ? from + 3 * BLOCK : nullptr;
            double* to = grad_log_radii + k * at.step;
            for (int64_t t = 0; t < at.count; t++) {
                double r = radius[t], dx = ray[0][t], dy = ray[1][t], dz = ray[2][t];
                double x = P[3] + r * dx, y = P[7] + r * dy, z = P[11] + r * dz, square = x * x + y * y + z * z;
                double away = inverse_root(square), distance = square * away;
                double px = fx * x, py = fy * y, beta = z + xi * distance;
                double scale = inverse_root(px * px + py * py + beta * beta);
                double u = px * scale, v = py * scale, depth = beta * scale;
                double gu = from[t], gv = from[BLOCK + t], gd = from_depth ? from_depth[t] : 0.0;
                double along = gu * u + gv * v + gd * depth;
                double outward = (x * dx + y * dy + z * dz) * away;  // d distance / dr
                double change = fx * dx * (gu - u * along) + fy * dy * (gv - v * along);
                change = (change + (dz + xi * outward) * (gd - depth * along)) * scale + from[2 * BLOCK + t] * outward;
                to[t] += exists[t] ? r * change : 0.0;
            }
        }
    }
}
