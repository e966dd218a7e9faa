// Curved-ray keys for one query frame: geometry, expected phasors and modulation in one pass, and its gradient.
//
// The maths is that of encoding.py. What differs is the order of work: tokens lie side by side in vector registers,
// geometry in double precision, phasors in float. A breakpoint's sin and cos are shared by the two segments that meet
// there. With a, b the phases at a segment's ends, h = (b - a)/2 and g(h) = tan(h)/h,
//     mean of exp(i theta) = (exp(ia) + exp(ib))/2 * g(h)            where |h| <= 1/2: nothing cancels
//                          = (exp(ib) - exp(ia)) / (i (b - a))       elsewhere
// Phases are carried in half turns, so that reducing them to one period is exact.
//
//     b batch   h head   n token   s source frame   a ray   c coordinate   f frequency   k breakpoint   d channel
//     j = (a c) a path's coordinate   i = (a c f) a phasor   lane: a token within its vector

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

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

constexpr int BLOCK = 64;  // tokens whose geometry is held at once
constexpr int RANGE = 2;   // its place among the coordinates (u, v, range, depth)
constexpr double PI = 3.14159265358979323846;

// The same layout as Problem in curved.py.
extern "C" struct Problem {
    const float* keys;        // b h n d
    const double* radii;      // b k n
    const double* rays;       // bc a 3 n, bc being 1 or b
    const uint8_t* exists;    // bc a n
    const double* poses;      // bc s 12, rows of [R | t] from each source camera to the query's
    const double* lenses;     // bc 3: fx/W, fy/H, xi
    const double* frequency;  // c f, radians per unit
    int64_t batch, camera_batch, heads, tokens, patches, dim, breakpoints, rays_per_patch, coordinates, frequencies;
    int64_t threads;
    // GOMP_parallel of the OpenMP runtime that torch runs on, or null: torch's own threads, awake since its last call.
    // New ones would share the cores with them, for they spin a while after every attention.
    void (*pool)(void (*)(void*), void*, unsigned, unsigned);
};

static inline Vec load(const float* p) { return *reinterpret_cast<const Loose*>(p); }
static inline void store(float* p, Vec x) { *reinterpret_cast<Loose*>(p) = x; }
static inline Vec all(float x) { return Vec{} + x; }

// sin and cos of pi * y for |y| < 2^21, as minimax polynomials on half a turn (errors 3e-9 and 2e-10).
static inline void sin_cos(Vec y, Vec& sine, Vec& cosine) {
    const float magic = 12582912.0f;  // 1.5 * 2^23: adding it leaves round(y) in the low bits
    Vec shifted = y + magic;
    Vec r = y - (shifted - magic);
    Vec t = r * r;
    Mask odd = reinterpret_cast<Mask>(shifted) << 31;  // an odd number of half turns flips both signs
    Vec s = 0.07722224f * t - 0.5980464f;
    s = s * t + 2.5500317f;
    s = s * t - 5.167707f;
    s = (s * t + 3.1415925f) * r;
    Vec c = -0.024396718f * t + 0.23493756f;
    c = c * t - 1.3352121f;
    c = c * t + 4.058709f;
    c = c * t - 4.934802f;
    c = c * t + 1.0f;
    sine = reinterpret_cast<Vec>(reinterpret_cast<Mask>(s) ^ odd);
    cosine = reinterpret_cast<Vec>(reinterpret_cast<Mask>(c) ^ odd);
}

// (tan(h) - h) / (2 h^3) as a polynomial of h^2 <= 1/4 (error 2e-7); then g(h) = 1 + 2 h^2 * bend.
static inline Vec bend_of(Vec square) {
    Vec p = 0.013520068f * square + 0.026558083f;
    p = p * square + 0.06668865f;
    return p * square + 0.1666665f;
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

struct Pair {  // what belongs to cos and to sin
    std::vector<float> cosine, sine;
    explicit Pair(size_t size) : cosine(size), sine(size) {}
};

struct Scratch {
    const int K, A, C, F, J, n, width;           // width: n rounded up to whole vectors
    std::vector<float> path, gap;                // k j block: coordinates, and 1 / (step to the next breakpoint)
    std::vector<double> grad_path;               // k j block
    std::vector<float> half_turns, period, omega;  // c f: omega / pi, 1 / omega, omega
    Pair by_phasor, by_token;                    // i lane; lane i: a few tokens' coefficients
    Pair grad_by_phasor, grad_by_token;          // the same, their gradients
    std::vector<Vec> grad_step;                  // k

    explicit Scratch(const Problem& p)
        : K(p.breakpoints), A(p.rays_per_patch), C(p.coordinates), F(p.frequencies), J(A * C), n(J * F),
          width((n + LANES - 1) / LANES * LANES), path(size_t(K) * J * BLOCK), gap(path.size()),
          grad_path(path.size()), half_turns(C * F), period(C * F), omega(C * F), by_phasor(width * LANES),
          by_token(width * LANES), grad_by_phasor(width * LANES), grad_by_token(width * LANES), grad_step(K) {
        for (int i = 0; i < C * F; i++) {
            double w = p.frequency[i];
            half_turns[i] = float(w / PI);
            period[i] = w != 0 ? float(1 / w) : 0.0f;
            omega[i] = float(w);
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
        for (int64_t t = 0; t < count; t++) nearest = std::min(nearest, radii[t]);  // of the first breakpoint, the nearest
        return away <= 1e-9 * nearest;
    }
};

// The path of every token in the run: (u, v, range, depth) at each breakpoint, zero where there is no ray.
static void walk(const Place& at, Scratch& w) {
    const double *P = at.pose, fx = at.lens[0], fy = at.lens[1], xi = at.lens[2];
    for (int a = 0; a < w.A; a++) {
        const double *rx = at.rays + a * 3 * at.step, *ry = rx + at.step, *rz = ry + at.step;
        const uint8_t* exists = at.exists + a * at.step;
        for (int k = 0; k < w.K; k++) {
            const double* radius = at.radii + k * at.step;
            float* to = &w.path[size_t(k * w.J + a * w.C) * BLOCK];
            float depth[BLOCK];
            for (int64_t t = 0; t < at.count; t++) {
                double r = radius[t];
                double x = P[3] + r * (P[0] * rx[t] + P[1] * ry[t] + P[2] * rz[t]);
                double y = P[7] + r * (P[4] * rx[t] + P[5] * ry[t] + P[6] * rz[t]);
                double z = P[11] + r * (P[8] * rx[t] + P[9] * ry[t] + P[10] * rz[t]);
                double distance = std::sqrt(x * x + y * y + z * z);
                double px = fx * x, py = fy * y, beta = z + xi * distance;
                double square = px * px + py * py + beta * beta;
                double keep = exists[t] ? 1.0 : 0.0;
                double scale = square > 0 ? keep / std::sqrt(square > 0 ? square : 1.0) : 0.0;
                to[t] = float(px * scale);
                to[BLOCK + t] = float(py * scale);
                to[2 * BLOCK + t] = float(distance * keep);
                depth[t] = float(beta * scale);
            }
            if (w.C == 4) std::memcpy(to + 3 * BLOCK, depth, sizeof(float) * at.count);
        }
    }
    for (int kj = 0; kj < (w.K - 1) * w.J; kj++) {
        const float *here = &w.path[size_t(kj) * BLOCK], *next = here + size_t(w.J) * BLOCK;
        float* gap = &w.gap[size_t(kj) * BLOCK];
        for (int64_t t = 0; t < at.count; t++) {
            float step = next[t] - here[t];
            gap[t] = step != 0 ? 1.0f / (step != 0 ? step : 1.0f) : 0.0f;
        }
    }
}

// From coordinates to log-radii: grad_log_radii[k, n] += r_k * ray . dL/dX.
static void walk_backward(const Place& at, const Scratch& w, double* grad_log_radii) {
    const double *P = at.pose, fx = at.lens[0], fy = at.lens[1], xi = at.lens[2];
    for (int a = 0; a < w.A; a++) {
        const double *rx = at.rays + a * 3 * at.step, *ry = rx + at.step, *rz = ry + at.step;
        const uint8_t* exists = at.exists + a * at.step;
        for (int k = 0; k < w.K; k++) {
            const double* radius = at.radii + k * at.step;
            const double* from = &w.grad_path[size_t(k * w.J + a * w.C) * BLOCK];
            const double* from_depth = w.C == 4 ? from + 3 * BLOCK : nullptr;
            double* to = grad_log_radii + k * at.step;
            for (int64_t t = 0; t < at.count; t++) {
                double r = radius[t];
                double dx = P[0] * rx[t] + P[1] * ry[t] + P[2] * rz[t];
                double dy = P[4] * rx[t] + P[5] * ry[t] + P[6] * rz[t];
                double dz = P[8] * rx[t] + P[9] * ry[t] + P[10] * rz[t];
                double x = P[3] + r * dx, y = P[7] + r * dy, z = P[11] + r * dz;
                double distance = std::sqrt(x * x + y * y + z * z);
                double away = distance > 0 ? 1.0 / (distance > 0 ? distance : 1.0) : 0.0;
                double px = fx * x, py = fy * y, beta = z + xi * distance;
                double square = px * px + py * py + beta * beta;
                double scale = square > 0 ? 1.0 / std::sqrt(square > 0 ? square : 1.0) : 0.0;
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

// Coefficients of LANES tokens from `first` on; with Gradient also that of their paths, from grad_by_phasor. With
// `same_place` a bearing is one phasor, without a slope.
template <bool Gradient>
static void phasors(Scratch& w, int64_t first, bool same_place) {
    const Vec share = all(1.0f / float(w.K - 1));
    const size_t next_k = size_t(w.J) * BLOCK;
    for (int j = 0; j < w.J; j++) {
        const float *path = &w.path[size_t(j) * BLOCK + first], *gap = &w.gap[size_t(j) * BLOCK + first];
        const bool one_phasor = same_place && j % w.C != RANGE;
        if constexpr (Gradient) std::fill(w.grad_step.begin(), w.grad_step.end(), Vec{});
        for (int f = 0; f < w.F; f++) {
            const int cf = j % w.C * w.F + f, i = (j * w.F + f) * LANES;
            const Vec turn = all(w.half_turns[cf]), period = all(w.period[cf]), weight = all(w.omega[cf]) * share;
            Vec gc, gs, real0, imag0;
            Vec a = turn * load(path), s0, c0, sum_cos = Vec{}, sum_sin = Vec{};
            sin_cos(a, s0, c0);
            if (one_phasor) {
                store(&w.by_phasor.cosine[i], c0);
                store(&w.by_phasor.sine[i], s0);
                continue;
            }
            if constexpr (Gradient) {
                gc = load(&w.grad_by_phasor.cosine[i]), gs = load(&w.grad_by_phasor.sine[i]);
                real0 = c0 * gc + s0 * gs, imag0 = c0 * gs - s0 * gc;  // against exp(ia), and against i exp(ia)
            }
            for (int k = 1; k < w.K; k++) {
                Vec b = turn * load(path + k * next_k), s1, c1;
                sin_cos(b, s1, c1);
                Vec half = (b - a) * float(PI / 2), square = half * half, bend = bend_of(square);
                Vec half_g = square * bend + 0.5f, inverse = period * load(gap + (k - 1) * next_k);
                Mask small = square <= 0.25f;
                Vec scale = small ? half_g : inverse;
                sum_cos += (small ? c0 + c1 : s1 - s0) * scale;
                sum_sin += (small ? s0 + s1 : c0 - c1) * scale;
                if constexpr (Gradient) {
                    Vec real1 = c1 * gc + s1 * gs, imag1 = c1 * gs - s1 * gc;
                    Vec level = (imag0 + imag1) * half_g * 0.5f, tilt = (real0 + real1) * half * bend * 0.5f;
                    Vec mean = (imag0 - imag1) * inverse;
                    w.grad_step[k - 1] += (small ? level + tilt : (mean - real0) * inverse) * weight;
                    w.grad_step[k] += (small ? level - tilt : (real1 - mean) * inverse) * weight;
                    real0 = real1, imag0 = imag1;
                }
                a = b, s0 = s1, c0 = c1;
            }
            store(&w.by_phasor.cosine[i], sum_cos * share);
            store(&w.by_phasor.sine[i], sum_sin * share);
        }
        if constexpr (Gradient)
            for (int k = 0; k < w.K; k++)
                for (int lane = 0; lane < LANES; lane++)
                    w.grad_path[k * next_k + size_t(j) * BLOCK + first + lane] = w.grad_step[k][lane];
    }
    transpose(w.by_phasor.cosine.data(), w.width, LANES, w.by_token.cosine.data());
    transpose(w.by_phasor.sine.data(), w.width, LANES, w.by_token.sine.data());
}

static void turn_key(const float* __restrict key, const float* __restrict c, const float* __restrict s, int n,
                     int64_t dim, float* __restrict out) {
    for (int i = 0; i < n; i++) {
        out[i] = key[i] * c[i] - key[n + i] * s[i];
        out[n + i] = key[i] * s[i] + key[n + i] * c[i];
    }
    std::memcpy(out + 2 * n, key + 2 * n, sizeof(float) * (dim - 2 * n));
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

// Every run of tokens, each taken by whichever thread is free. A machine that refuses threads gets one.
template <class Work>
static void each_run(const Problem& p, Work work) {
    const int64_t frames = p.tokens / p.patches, runs = (p.patches + BLOCK - 1) / BLOCK;
    const int64_t total = p.batch * frames * runs, threads = std::max<int64_t>(1, std::min(p.threads, total));
    std::atomic<int64_t> next{0};
    auto help = [&] {
        Scratch scratch(p);
        for (int64_t item = next++; item < total; item = next++) {
            int64_t b = item / (frames * runs), s = item / runs % frames, start = item % runs * BLOCK;
            int64_t bc = p.camera_batch > 1 ? b : 0, token = s * p.patches + start;
            Place at{p.radii + b * p.breakpoints * p.tokens + token,
                     p.rays + bc * p.rays_per_patch * 3 * p.tokens + token,
                     p.poses + (bc * frames + s) * 12,
                     p.lenses + bc * 3,
                     p.exists + bc * p.rays_per_patch * p.tokens + token,
                     p.tokens,
                     std::min<int64_t>(BLOCK, p.patches - start)};
            work(b, token, at, scratch);
        }
    };
    if (threads == 1) return help();
    if (p.pool) return p.pool([](void* f) { (*static_cast<decltype(help)*>(f))(); }, &help, unsigned(threads), 0);
    std::vector<std::thread> others;
    try {
        for (int64_t i = 1; i < threads; i++) others.emplace_back(help);
    } catch (const std::system_error&) {
        // fewer hands, the same work
    }
    help();
    for (auto& other : others) other.join();
}

// Every row of dim channels that belongs to the tokens [first, first + LANES) of a run, whichever its head.
template <class Work>
static void each_row(const Problem& p, int64_t b, int64_t token, int64_t first, int64_t count, Work work) {
    const int64_t last = std::min<int64_t>(first + LANES, count);
    for (int64_t h = 0; h < p.heads; h++)
        for (int64_t t = first; t < last; t++)
            work(((b * p.heads + h) * p.tokens + token + t) * p.dim, (t - first));
}

extern "C" void curved_modulate(const Problem* problem, float* out) {
    const Problem& p = *problem;
    each_run(p, [&](int64_t b, int64_t token, const Place& at, Scratch& w) {
        walk(at, w);
        const bool same_place = at.same_place();
        for (int64_t first = 0; first < at.count; first += LANES) {
            phasors<false>(w, first, same_place);
            each_row(p, b, token, first, at.count, [&](int64_t row, int64_t lane) {
                const float *c = &w.by_token.cosine[lane * w.width], *s = &w.by_token.sine[lane * w.width];
                turn_key(p.keys + row, c, s, w.n, p.dim, out + row);
            });
        }
    });
}

// grad_keys and grad_log_radii are added to, so that query frames can follow one another.
extern "C" void curved_modulate_backward(const Problem* problem, const float* grad, float* grad_keys,
                                         double* grad_log_radii) {
    const Problem& p = *problem;
    each_run(p, [&](int64_t b, int64_t token, const Place& at, Scratch& w) {
        walk(at, w);
        const bool same_place = at.same_place();
        for (int64_t first = 0; first < at.count; first += LANES) {
            Pair& sums = w.grad_by_token;
            std::fill(sums.cosine.begin(), sums.cosine.end(), 0.0f);
            std::fill(sums.sine.begin(), sums.sine.end(), 0.0f);
            each_row(p, b, token, first, at.count, [&](int64_t row, int64_t lane) {
                float *gc = &sums.cosine[lane * w.width], *gs = &sums.sine[lane * w.width];
                add_coefficient_gradient(p.keys + row, grad + row, w.n, gc, gs);
            });
            transpose(sums.cosine.data(), LANES, w.width, w.grad_by_phasor.cosine.data());
            transpose(sums.sine.data(), LANES, w.width, w.grad_by_phasor.sine.data());
            phasors<true>(w, first, same_place);
            each_row(p, b, token, first, at.count, [&](int64_t row, int64_t lane) {
                const float *c = &w.by_token.cosine[lane * w.width], *s = &w.by_token.sine[lane * w.width];
                add_key_gradient(grad + row, c, s, w.n, p.dim, grad_keys + row);
            });
        }
        walk_backward(at, w, grad_log_radii + b * p.breakpoints * p.tokens + token);
    });
}
