// Curved-ray keys, and values if asked, for one query frame: geometry, expected phasors and modulation in one pass, and
// its gradient.
//
// The maths is that of encoding/curved.py. What differs is the order of work: tokens lie side by side in vector registers,
// geometry in double precision, phasors in float. With a, b the phases at a segment's ends,
//     mean of exp(i theta) = exp(i (a + b)/2) sin(h)/h,   h = (b - a)/2.
// Phases are carried in half turns, so that reducing them to one period is exact. Where |h| is at most a quarter turn
// sin(h)/h is a polynomial and nothing is divided; a vector of such tokens takes a shorter way to the same bits.
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
#include <vector>

#include "lanes.cpp"

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
    int64_t threads;
    // GOMP_parallel of the OpenMP runtime that torch runs on, or null: torch's own threads, awake since its last call.
    // New ones would share the cores with them, for they spin a while after every attention.
    void (*pool)(void (*)(void*), void*, unsigned, unsigned);
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
    double ray[3][BLOCK], depth[BLOCK];
    for (int a = 0; a < w.A; a++) {
        turn_rays(at, a, ray);
        const uint8_t* exists = at.exists + a * at.step;
        for (int k = 0; k < w.K; k++) {
            const double* radius = at.radii + k * at.step;
            double* to = &w.path[size_t(k * w.J + a * w.C) * BLOCK];
            for (int64_t t = 0; t < at.count; t++) {
                double r = radius[t], x = P[3] + r * ray[0][t], y = P[7] + r * ray[1][t], z = P[11] + r * ray[2][t];
                double square = x * x + y * y + z * z, distance = square * inverse_root(square);
                double px = fx * x, py = fy * y, beta = z + xi * distance, keep = exists[t] ? 1.0 : 0.0;
                double scale = keep * inverse_root(px * px + py * py + beta * beta);
                to[t] = px * scale;
                to[BLOCK + t] = py * scale;
                to[2 * BLOCK + t] = distance * keep;
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

static void turn_key(const float* __restrict key, const float* __restrict c, const float* __restrict s, int n,
                     int64_t dim, float* __restrict out) {
    for (int start = 0; start < n && n >= LANES; start += LANES) {
        const int i = std::min(start, n - LANES);  // the last vector overlaps the one before it
        Vec x = load(key + i), y = load(key + n + i), cosine = load(c + i), sine = load(s + i);
        store(out + i, x * cosine - y * sine);
        store(out + n + i, x * sine + y * cosine);
    }
    for (int i = 0; i < n && n < LANES; i++) {
        out[i] = key[i] * c[i] - key[n + i] * s[i];
        out[n + i] = key[i] * s[i] + key[n + i] * c[i];
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

// Radii (b k n) at even steps of log-radius from mu - |sigma| to mu + |sigma|, two where one breakpoint is asked for; and
// the least and the largest of them, not numbers where one is not.
extern "C" void curved_radii(const float* mu, const float* sigma, int64_t batch, int64_t tokens, int64_t breakpoints,
                             double* radii, double* ends) {
    const int64_t K = std::max<int64_t>(breakpoints, 2);
    double least = INFINITY, largest = -INFINITY, sum = 0;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t k = 0; k < K; k++) {
            const double step = breakpoints > 1 ? 2.0 * double(k) / double(K - 1) - 1.0 : 0.0;
            for (int64_t n = b * tokens; n < (b + 1) * tokens; n++) {
                const double radius = std::exp(double(mu[n]) + step * std::abs(double(sigma[n])));
                radii[b * (K - 1) * tokens + k * tokens + n] = radius;
                least = std::min(least, radius), largest = std::max(largest, radius), sum += radius;
            }
        }
    ends[0] = sum == sum ? least : sum;  // one that is not a number makes the sum so
    ends[1] = sum == sum ? largest : sum;
}

// Each row of `dim` channels turned by its own n phasors. Rows are (b h row): every head has the same phasors, and so has
// every entry of a batch if there are those of one.
extern "C" void curved_turn(const float* rows, const float* cosine, const float* sine, int64_t batch,
                            int64_t phasor_batch, int64_t heads, int64_t count, int64_t n, int64_t dim, float* out) {
    for (int64_t bh = 0; bh < batch * heads; bh++)
        for (int64_t row = bh * count, i = phasor_batch > 1 ? bh / heads * count : 0; row < (bh + 1) * count; row++, i++)
            turn_key(rows + row * dim, cosine + i * n, sine + i * n, int(n), dim, out + row * dim);
}

extern "C" void curved_modulate(const Problem* problem, float* out, float* out_values) {
    const Problem& p = *problem;
    each_run(p, [&](int64_t b, int64_t token, const Place& at, Scratch& w) {
        walk(at, w);
        const bool same_place = at.same_place();
        for (int64_t first = 0; first < at.count; first += LANES) {
            phasors<false>(w, first, same_place);
            each_row(p, b, token, first, at.count, [&](int64_t row, int64_t lane) {
                const float *c = &w.by_token.cosine[lane * w.width], *s = &w.by_token.sine[lane * w.width];
                turn_key(p.keys + row, c, s, w.n, p.dim, out + row);
                if (p.values) turn_key(p.values + row, c, s, w.n, p.dim, out_values + row);
            });
        }
    });
}

// From grad and grad_turned_values, those of what was turned. grad_keys, grad_values and grad_log_radii are added to, so
// that query frames can follow one another.
extern "C" void curved_modulate_backward(const Problem* problem, const float* grad, const float* grad_turned_values,
                                         float* grad_keys, float* grad_values, double* grad_log_radii) {
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
                if (p.values) add_coefficient_gradient(p.values + row, grad_turned_values + row, w.n, gc, gs);
            });
            transpose(sums.cosine.data(), LANES, w.width, w.grad_by_phasor.cosine.data());
            transpose(sums.sine.data(), LANES, w.width, w.grad_by_phasor.sine.data());
            phasors<true>(w, first, same_place);
            each_row(p, b, token, first, at.count, [&](int64_t row, int64_t lane) {
                const float *c = &w.by_token.cosine[lane * w.width], *s = &w.by_token.sine[lane * w.width];
                add_key_gradient(grad + row, c, s, w.n, p.dim, grad_keys + row);
                if (p.values) add_key_gradient(grad_turned_values + row, c, s, w.n, p.dim, grad_values + row);
            });
        }
        walk_backward(at, w, grad_log_radii + b * p.breakpoints * p.tokens + token);
    });
}
