// A panorama's copies, and what a lens sees of them: the work of sphere_pyramid.py, in one pass each.
//
// Colours are four floats, the last unused, so that a pixel is one vector. A copy lies in the atlas with a border of one
// pixel, from row `top` on: width, height, top per copy.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

typedef float Colour __attribute__((vector_size(16), aligned(4), may_alias));
typedef double Wide __attribute__((vector_size(32)));

constexpr double PI = 3.14159265358979323846;
constexpr int BLOCK = 256;  // pixels whose places are worked out together

struct Copy {
    int64_t width, height, top;
};

static inline Colour* row_of(float* atlas, int64_t cols, const Copy& copy, int64_t row) {
    return reinterpret_cast<Colour*>(atlas + 4 * (cols * (copy.top + 1 + row) + 1));
}

// The mean over 1 / cos(latitude) pixels of a row: whole ones, and a share of the one at either end.
static void even_rows(float* atlas, int64_t cols, const Copy& copy, double steepest) {
    std::vector<float> copied(4 * copy.width);
    const Colour* kept = reinterpret_cast<const Colour*>(copied.data());
    for (int64_t y = 0; y < copy.height; y++) {
        double latitude = ((y + 0.5) / copy.height - 0.5) * PI;
        double span = std::min(1 / std::cos(latitude), copy.width / 2.0);
        if (span <= steepest) continue;
        Colour* row = row_of(atlas, cols, copy, y);
        std::memcpy(copied.data(), row, copied.size() * sizeof(float));
        int64_t reach = static_cast<int64_t>((span - 1) / 2), width = copy.width;
        double share = (span - (2 * reach + 1)) / 2;
        Wide sum = {};
        for (int64_t d = -reach; d <= reach; d++) sum += __builtin_convertvector(kept[(d + width) % width], Wide);
        for (int64_t x = 0; x < width; x++) {
            int64_t before = (x - reach - 1 + 2 * width) % width, after = (x + reach + 1) % width;
            Wide ends = __builtin_convertvector(kept[before], Wide) + __builtin_convertvector(kept[after], Wide);
            row[x] = __builtin_convertvector((sum + share * ends) / span, Colour);
            int64_t last = (x - reach + width) % width;
            sum += __builtin_convertvector(kept[after], Wide) - __builtin_convertvector(kept[last], Wide);
        }
    }
}

static void add_border(float* atlas, int64_t cols, const Copy& copy) {
    int64_t half = copy.width / 2;
    for (int64_t pole = 0; pole < 2; pole++) {
        Colour* beyond = row_of(atlas, cols, copy, pole ? copy.height : -1);
        Colour* last = row_of(atlas, cols, copy, pole ? copy.height - 1 : 0);
        for (int64_t x = 0; x < copy.width; x++) beyond[x] = last[(x + copy.width - half) % copy.width];
    }
    for (int64_t y = -1; y <= copy.height; y++) {
        Colour* row = row_of(atlas, cols, copy, y);
        row[-1] = row[copy.width - 1];
        row[copy.width] = row[0];
    }
}

extern "C" void sphere_copies(const uint8_t* image, int64_t width, int64_t block, double steepest, float* atlas,
                              int64_t cols, const Copy* copies, int64_t count) {
    for (int64_t y = 0; y < copies[0].height; y++) {
        Colour* row = row_of(atlas, cols, copies[0], y);
        for (int64_t x = 0; x < copies[0].width; x++) {
            int32_t red = 0, green = 0, blue = 0;
            for (int64_t j = 0; j < block; j++) {
                const uint8_t* pixel = image + 3 * ((y * block + j) * width + x * block);
                for (int64_t i = 0; i < block; i++, pixel += 3) red += pixel[0], green += pixel[1], blue += pixel[2];
            }
            row[x] = Colour{float(red), float(green), float(blue), 0} / float(block * block);
        }
    }
    for (int64_t k = 1; k < count; k++)
        for (int64_t y = 0; y < copies[k].height; y++) {
            const Colour* above = row_of(atlas, cols, copies[k - 1], 2 * y);
            const Colour* below = row_of(atlas, cols, copies[k - 1], 2 * y + 1);
            Colour* row = row_of(atlas, cols, copies[k], y);
            for (int64_t x = 0; x < copies[k].width; x++)
                row[x] = (above[2 * x] + above[2 * x + 1] + below[2 * x] + below[2 * x + 1]) * 0.25f;
        }
    for (int64_t k = 0; k < count; k++) {
        even_rows(atlas, cols, copies[k], steepest);
        add_border(atlas, cols, copies[k]);
    }
}

// atan2 for y of any sign, to 3e-7 radians (Cephes' polynomial on [-tan(pi/8), tan(pi/8)]); 0 at the origin.
static inline float arctangent(float y, float x) {
    float ax = std::fabs(x), ay = std::fabs(y);
    float low = ax < ay ? ax : ay, high = ax < ay ? ay : ax;
    float t = low / (high > 1e-30f ? high : 1e-30f);
    bool steep = t > 0.41421356f;
    float u = steep ? (t - 1) / (t + 1) : t;
    float z = u * u;
    float angle = (((8.05374449538e-2f * z - 1.38776856032e-1f) * z + 1.99777106478e-1f) * z - 3.33329491539e-1f) * z * u + u;
    angle += steep ? float(PI / 4) : 0.0f;
    angle = ay > ax ? float(PI / 2) - angle : angle;
    angle = x < 0 ? float(PI) - angle : angle;
    return y < 0 ? -angle : angle;
}

static inline Colour fetched(const float* atlas, int64_t cols, const Copy& copy, float turn, float fall) {
    float x = turn * copy.width + 0.5f, y = fall * copy.height + 0.5f;  // centres at whole numbers, the border counted
    int64_t i = static_cast<int64_t>(x), j = static_cast<int64_t>(y);
    i = std::min(i, copy.width), j = std::min(j, copy.height);
    float right = x - i, down = y - j;
    const Colour* above = reinterpret_cast<const Colour*>(atlas + 4 * (cols * (copy.top + j) + i));
    const Colour* below = above + cols;
    Colour upper = above[0] + right * (above[1] - above[0]), lower = below[0] + right * (below[1] - below[0]);
    return upper + down * (lower - upper);
}

extern "C" void sphere_look(const float* rays, const float* fineness, const uint8_t* exists, int64_t pixels,
                            const float* r, const float* atlas, int64_t cols, const Copy* copies, int64_t count,
                            uint8_t* out) {
    const float *rx = rays, *ry = rays + pixels, *rz = rays + 2 * pixels;
    const float finest = std::log2(float(copies[0].width)), coarsest = float(count - 1);
    float turn[BLOCK], fall[BLOCK], level[BLOCK];
    for (int64_t start = 0; start < pixels; start += BLOCK) {
        int64_t some = std::min<int64_t>(BLOCK, pixels - start);
        for (int64_t i = 0; i < some; i++) {
            float a = rx[start + i], b = ry[start + i], c = rz[start + i];
            float x = r[0] * a + r[1] * b + r[2] * c, y = r[3] * a + r[4] * b + r[5] * c, z = r[6] * a + r[7] * b + r[8] * c;
            turn[i] = arctangent(x, z) * float(0.5 / PI) + 0.5f;
            fall[i] = arctangent(y, std::sqrt(x * x + z * z)) * float(1 / PI) + 0.5f;
            float wanted = fineness[start + i] + finest;
            wanted = wanted < 0 ? 0 : wanted;
            level[i] = wanted > coarsest ? coarsest : wanted;
        }
        for (int64_t i = 0; i < some; i++) {
            uint8_t* pixel = out + 3 * (start + i);
            if (!exists[start + i]) {
                pixel[0] = pixel[1] = pixel[2] = 0;
                continue;
            }
            int64_t fine = static_cast<int64_t>(level[i]);
            float share = level[i] - fine;
            Colour colour = fetched(atlas, cols, copies[fine], turn[i], fall[i]);
            if (share > 0) colour += share * (fetched(atlas, cols, copies[fine + 1], turn[i], fall[i]) - colour);
            for (int64_t k = 0; k < 3; k++) pixel[k] = static_cast<uint8_t>(std::min(255.0f, colour[k] + 0.5f));
        }
    }
}
