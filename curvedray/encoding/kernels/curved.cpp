// Curved-ray attention: each query frame's keys, and values if asked, turned by their expected phasors, its queries'
// attention to them, and the gradient of what was turned.
//
// The maths is that of encoding/curved.py. What differs is the order of work: tokens lie side by side in vector
// registers, geometry in double precision (paths.cpp), phasors in float (phasors.cpp), which turn keys and values
// (turns.cpp); attention itself has queries side by side (attend.cpp).

#include "attend.cpp"
#include "phasors.cpp"
#include "turns.cpp"

// Every run of tokens of a source frame.
template <class Work>
static void each_run(const Problem& p, Work work) {
    const int64_t frames = p.tokens / p.patches, runs = (p.patches + BLOCK - 1) / BLOCK;
    each_item(p.threads, p.batch * frames * runs, [&] { return Scratch(p); }, [&](int64_t item, Scratch& scratch) {
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
    });
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

static void modulate(const Problem& p, float* out, float* out_values) {
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

extern "C" void curved_modulate(const Problem* problem, float* out, float* out_values) {
    modulate(*problem, out, out_values);
}

// Each query frame attends to keys, and to values if they are turned, as it sees them.
extern "C" void curved_attention(const Problem* problem, const Frames* frames) {
    Problem p = *problem;
    for (int64_t frame = 0; frame < frames->count; frame++) {
        modulate(p, frames->turned_keys, frames->turned_values);
        attend(p, *frames, frame);
        p.poses += p.camera_batch * (p.tokens / p.patches) * 12;
        p.lenses += p.camera_batch * 3;
    }
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
