// Softmax attention in float, queries side by side in vector registers. Never compiled alone.
//
// With a query in each lane, keys and values stay as they lie in memory: one number of theirs multiplies a whole vector
// of queries, and neither the largest score nor the sum of weights is sought across lanes. A tile, ROWS keys (or
// channels) by W vectors of queries, has all its sums in registers. Keys come in chunks, whose scores stay in the nearest
// cache, while the chunk itself stays in the next one for several panels.
//
//     W vectors of queries are a panel; what belongs to it lies as (row, W)

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "paths.cpp"
#include "turns.cpp"

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int ROWS = 8, WIDEST = 3;  // 24 sums in 32 registers
#else
constexpr int ROWS = 6, WIDEST = 2;  // 12 in 16
#endif
constexpr int64_t PANEL = WIDEST * LANES, PANELS = 256 / PANEL;  // queries of a panel, panels that share a chunk
constexpr int64_t CHUNK = 96;                                    // keys; whole tiles
constexpr float LOG2_E = 1.44269504f, LN_2 = 0.69314718f;

struct Rows {  // of channels, `step` floats apart
    const float* first;
    int64_t step, count;

    Rows part(int64_t start, int64_t most) const { return {first + start * step, step, std::min(most, count - start)}; }
};

extern "C" struct Tokens {  // b h n d
    const float* first;
    int64_t steps[3];  // floats between entries of b, h and n

    Rows of(int64_t b, int64_t h, int64_t start, int64_t count) const {
        return {first + b * steps[0] + h * steps[1] + start * steps[2], steps[2], count};
    }
};

// The same layout as Frames in compiled.py.
extern "C" struct Frames {
    Tokens queries, values;  // values that are not turned; where they are, Problem has them
    float *out, *logsumexp;  // b h (q p) d, b h (q p)
    float *turned_keys, *turned_values;             // room for those of one frame
    const float *cosine, *sine;                     // of the queries' own bearings, (b (q p) i) or ((q p) i), or null
    int64_t bearing_batch, turn_queries, turn_out;  // queries by their bearing, outputs back by it
    int64_t count, patches;
};

struct Bearings {  // of some queries, or none
    const float *cosine, *sine;
    int64_t phasors;

    Bearings from(int64_t q) const {
        return cosine ? Bearings{cosine + q * phasors, sine + q * phasors, phasors} : *this;
    }
};

// out[r] = out[r] keep + sum over i of rows[r][i step] panel[i]; nothing of `out` is kept where `keep` is null.
// A function of its own, so that all its pointers and sums find registers.
template <int W>
__attribute__((noinline)) static void add_products(const float* const* rows, int64_t step, const Vec* panel,
                                                   int64_t count, const Vec* keep, Vec* out) {
    const float* row[ROWS];
    Vec sum[ROWS][W] = {};
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++) {
        row[r] = rows[r];
        for (int w = 0; w < W && keep; w++) sum[r][w] = out[r * W + w] * keep[w];
    }
    for (int64_t i = 0; i < count; i++, panel += W) {
        Vec column[W];
        for (int w = 0; w < W; w++) column[w] = in_register(panel[w]);
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; r++)
            for (int w = 0; w < W; w++) sum[r][w] += row[r][i * step] * column[w];
    }
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++)
        for (int w = 0; w < W; w++) out[r * W + w] = sum[r][w];
}

struct Panel {
    Vec largest[WIDEST], total[WIDEST];  // scores so far: the largest, and the sum of their powers relative to it
    std::vector<Vec> queries, out;       // by channel; `out` has room for a last tile that is part of one
    int W = 0;
    explicit Panel(int64_t width) : queries(width * WIDEST), out((width + ROWS) * WIDEST) {}

    // Scores are exponents of 2 instead of e from here on.
    void begin(const Rows& from, const Bearings& own, int64_t dim, int64_t width, float* rows) {
        const float scale = LOG2_E / std::sqrt(float(dim));
        W = int((from.count + LANES - 1) / LANES);
        for (int64_t q = 0; q < W * LANES; q++) {
            const int64_t last = std::min(q, from.count - 1);  // once more in spare lanes
            const float* row = from.first + last * from.step;
            const Bearings at = own.from(last);
            float* to = rows + q * width;
            if (at.cosine) turn_key(row, at.cosine, at.sine, int(at.phasors), dim, to);
            for (int64_t c = 0; c < width; c++) to[c] = c < dim ? (at.cosine ? to[c] : row[c]) * scale : 0.0f;
        }
        transpose(rows, W * LANES, int(width), reinterpret_cast<float*>(queries.data()));
        std::fill(out.begin(), out.end(), Vec{});
        std::fill(largest, largest + W, all(-INFINITY));
        std::fill(total, total + W, Vec{});
    }

    // Attend to a few keys more. What was summed before shrinks if one of them has a larger score.
    template <int Most = WIDEST>
    void add(const Rows& keys, const Rows& values, int64_t dim, Vec* scores) {
        if constexpr (Most > 1)
            if (W < Most) return add<Most - 1>(keys, values, dim, scores);
        const float* rows[ROWS];
        Vec shrink[Most];
        for (int64_t k = 0; k < keys.count; k += ROWS) {
            for (int r = 0; r < ROWS; r++) rows[r] = keys.first + std::min(k + r, keys.count - 1) * keys.step;
            add_products<Most>(rows, 1, queries.data(), dim, nullptr, scores + k * Most);
        }
        for (int w = 0; w < Most; w++) {
            Vec top = largest[w];
            for (int64_t i = w; i < keys.count * Most; i += Most) top = scores[i] > top ? scores[i] : top;
            shrink[w] = power_of_2(largest[w] - top);
            Vec sum = total[w] * shrink[w];
            for (int64_t i = w; i < keys.count * Most; i += Most) sum += scores[i] = power_of_2(scores[i] - top);
            largest[w] = top, total[w] = sum;
        }
        for (int64_t c = 0; c < dim; c += ROWS) {
            for (int r = 0; r < ROWS; r++) rows[r] = values.first + std::min(c + r, dim - 1);
            add_products<Most>(rows, values.step, scores, keys.count, shrink, out.data() + c * Most);
        }
    }

    void end(int64_t count, const Bearings& own, int64_t dim, int64_t width, float* rows, float* to, float* logsumexp) {
        for (int64_t i = 0; i < width * W; i++) out[i] /= total[i % W];
        transpose(reinterpret_cast<float*>(out.data()), int(width), W * LANES, rows);
        for (int64_t q = 0; q < count; q++) {
            const float* row = rows + q * width;
            const Bearings at = own.from(q);
            if (at.cosine) turn_key<true>(row, at.cosine, at.sine, int(at.phasors), dim, to + q * dim);
            else std::copy(row, row + dim, to + q * dim);
            logsumexp[q] = (largest[q / LANES][q % LANES] + std::log2(total[q / LANES][q % LANES])) * LN_2;
        }
    }
};

// What a thread needs to attend from at most PANELS panels of queries at a time.
struct Attention {
    const int64_t dim, width;  // width: dim rounded up to whole vectors
    std::vector<Panel> panels;
    std::vector<Vec> scores;
    std::vector<float> rows;
    Attention(int64_t channels, int64_t most)
        : dim(channels), width((dim + LANES - 1) / LANES * LANES), scores((CHUNK + ROWS) * WIDEST),
          rows(width * PANEL) {
        panels.reserve(most);
        for (int64_t i = 0; i < most; i++) panels.emplace_back(width);
    }

    // Queries are turned by the bearings `before`, outputs back by those `after`.
    void attend(const Rows& queries, const Rows& keys, const Rows& values, const Bearings& before,
                const Bearings& after, float* out, float* logsumexp) {
        for (int64_t q = 0; q < queries.count; q += PANEL)
            panels[q / PANEL].begin(queries.part(q, PANEL), before.from(q), dim, width, rows.data());
        for (int64_t k = 0; k < keys.count; k += CHUNK)
            for (int64_t q = 0; q < queries.count; q += PANEL)
                panels[q / PANEL].add(keys.part(k, CHUNK), values.part(k, CHUNK), dim, scores.data());
        for (int64_t q = 0; q < queries.count; q += PANEL) {
            const int64_t count = std::min(PANEL, queries.count - q);
            panels[q / PANEL].end(count, after.from(q), dim, width, rows.data(), out + q * dim, logsumexp + q);
        }
    }
};

// Every head's attention from one frame's queries to its turned keys; a thread takes a few panels at a time.
static void attend(const Problem& p, const Frames& f, int64_t frame) {
    const int64_t heads = p.batch * p.heads, queries = f.count * f.patches;
    const int64_t phasors = p.rays_per_patch * p.coordinates * p.frequencies;
    const int64_t panels = (f.patches + PANEL - 1) / PANEL, items = p.threads.count > 1 ? 3 * p.threads.count : 1;
    const int64_t most = std::min({(heads * panels - 1) / items + 1, panels, PANELS});
    const int64_t step = most * PANEL, blocks = (f.patches + step - 1) / step;
    const Tokens keys{f.turned_keys, {p.heads * p.tokens * p.dim, p.tokens * p.dim, p.dim}};
    Tokens values = p.values ? keys : f.values;
    if (p.values) values.first = f.turned_values;
    each_item(p.threads, heads * blocks, [&] { return Attention(p.dim, most); }, [&](int64_t item, Attention& room) {
        const int64_t bh = item / blocks, b = bh / p.heads, h = bh % p.heads, first = item % blocks * step;
        const int64_t query = frame * f.patches + first, to = bh * queries + query;
        const Bearings none{nullptr, nullptr, phasors};
        const Bearings own = Bearings{f.cosine, f.sine, phasors}.from((f.bearing_batch > 1 ? b : 0) * queries + query);
        room.attend(f.queries.of(b, h, query, std::min(step, f.patches - first)), keys.of(b, h, 0, p.tokens),
                    values.of(b, h, 0, p.tokens), f.turn_queries ? own : none, f.turn_out ? own : none,
                    f.out + to * p.dim, f.logsumexp + to);
    });
}
