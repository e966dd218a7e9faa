// A panorama's copies, and what a lens sees of them: the work of sphere_pyramid.py, in one pass each.
//
// A colour is four bytes, the last unused, so that a pixel is one word. A copy lies in the atlas with a border of one
// pixel, from row `top` on: width, height, top per copy. Each is half as wide and half as high as the one before it.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>
#ifdef __AVX2__
#include <immintrin.h>
#endif

typedef uint32_t Word __attribute__((may_alias));
typedef int32_t Ints __attribute__((vector_size(16)));
typedef float Floats __attribute__((vector_size(16)));

constexpr double PI = 3.14159265358979323846;
constexpr int BLOCK = 256;  // pixels whose places are worked out together

struct Copy {
    int64_t width, height, top;
};

static inline Ints widened(uint32_t word) {
#ifdef __AVX2__
    return (Ints)_mm_cvtepu8_epi32(_mm_cvtsi32_si128(word));
#else
    return Ints{int32_t(word & 255), int32_t(word >> 8 & 255), int32_t(word >> 16 & 255), int32_t(word >> 24)};
#endif
}

static inline uint32_t rounded(Floats colour) {  // of numbers from 0 to 255
    Ints whole = __builtin_convertvector(colour + 0.5f, Ints);
#ifdef __AVX2__
    __m128i words = _mm_packus_epi32((__m128i)whole, (__m128i)whole);
    return _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
#else
    return uint32_t(whole[0]) | uint32_t(whole[1]) << 8 | uint32_t(whole[2]) << 16 | uint32_t(whole[3]) << 24;
#endif
}

// -- copies

static inline Word* row_of(uint8_t* atlas, int64_t cols, const Copy& copy, int64_t row) {
    return reinterpret_cast<Word*>(atlas) + cols * (copy.top + 1 + row) + 1;
}

// The mean over 1 / cos(latitude) pixels of a row: whole ones, and a share of the one at either end.
static void even_row(Word* row, int64_t width, double span, std::vector<uint8_t>& space) {
    int64_t reach = static_cast<int64_t>((span - 1) / 2), around = 4 * (reach + 1), bytes = 4 * width;
    space.resize(bytes + 2 * around);
    uint8_t *kept = space.data() + around, *out = reinterpret_cast<uint8_t*>(row);
    std::memcpy(kept, row, bytes);
    std::memcpy(kept - around, kept + bytes - around, around);
    std::memcpy(kept + bytes, kept, around);
    if (reach == 0) {  // most rows: three pixels, by weights of 256 in all, which leaves an even colour as it is
        const uint16_t end = static_cast<uint16_t>(std::lround(128 * (1 - 1 / span))), middle = 256 - 2 * end;
        for (int64_t i = 0; i < bytes; i++) {
            uint16_t ends = uint16_t(kept[i - 4] + kept[i + 4]);
            out[i] = uint16_t(uint16_t(kept[i] * middle) + uint16_t(ends * end) + 128) >> 8;
        }
        return;
    }
    const Word* pixels = reinterpret_cast<const Word*>(kept);
    const float share = float((span - (2 * reach + 1)) / 2), part = float(1 / span);
    Ints sum = {};
    for (int64_t d = -reach; d <= reach; d++) sum += widened(pixels[d]);
    for (int64_t x = 0; x < width; x++) {
        Ints after = widened(pixels[x + reach + 1]), ends = widened(pixels[x - reach - 1]) + after;
        row[x] = rounded((__builtin_convertvector(sum, Floats) + share * __builtin_convertvector(ends, Floats)) * part);
        sum += after - widened(pixels[x - reach]);
    }
}

static void add_border(uint8_t* atlas, int64_t cols, const Copy& copy) {
    int64_t half = copy.width / 2;
    for (int64_t pole = 0; pole < 2; pole++) {
        Word* beyond = row_of(atlas, cols, copy, pole ? copy.height : -1);
        const Word* last = row_of(atlas, cols, copy, pole ? copy.height - 1 : 0);
        std::memcpy(beyond + half, last, 4 * (copy.width - half));
        std::memcpy(beyond, last + copy.width - half, 4 * half);
    }
    for (int64_t y = -1; y <= copy.height; y++) {
        Word* row = row_of(atlas, cols, copy, y);
        row[-1] = row[copy.width - 1];
        row[copy.width] = row[0];
    }
}

// Two colours of a word at a time, each in 16 bits. `up` is what is added before two bits go: a half, or just less.
static inline uint32_t mean_of_four(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t up) {
    constexpr uint32_t EVEN = 0x00ff00ff;
    uint32_t even = (a & EVEN) + (b & EVEN) + (c & EVEN) + (d & EVEN) + up;
    uint32_t odd = (a >> 8 & EVEN) + (b >> 8 & EVEN) + (c >> 8 & EVEN) + (d >> 8 & EVEN) + up;
    return (even >> 2 & EVEN) | (odd >> 2 & EVEN) << 8;
}

static inline uint32_t word_of(const uint8_t* rgb) { return rgb[0] | uint32_t(rgb[1]) << 8 | uint32_t(rgb[2]) << 16; }

// The first copy is the mean of blocks of 2^halvings pixels.
static void fill_first(const uint8_t* image, int64_t width, int64_t halvings, Word* row, int64_t y, int64_t count) {
    int64_t block = int64_t(1) << halvings, shift = 2 * halvings;
    const uint8_t* top = image + 3 * y * block * width;
    if (halvings == 0) {
        for (int64_t x = 0; x < count; x++) row[x] = word_of(top + 3 * x);
        return;
    }
    if (halvings == 1) {
        const uint8_t* below = top + 3 * width;
        for (int64_t x = 0; x < count; x++, top += 6, below += 6)
            row[x] = mean_of_four(word_of(top), word_of(top + 3), word_of(below), word_of(below + 3), 0x00020002);
        return;
    }
    for (int64_t x = 0; x < count; x++) {
        uint32_t red = 1 << (shift - 1), green = red, blue = red;
        for (int64_t j = 0; j < block; j++) {
            const uint8_t* pixel = top + 3 * (j * width + x * block);
            for (int64_t i = 0; i < block; i++, pixel += 3) red += pixel[0], green += pixel[1], blue += pixel[2];
        }
        row[x] = red >> shift | green >> shift << 8 | blue >> shift << 16;
    }
}

extern "C" void sphere_copies(const uint8_t* image, int64_t width, int64_t halvings, double steepest, uint8_t* atlas,
                              int64_t cols, const Copy* copies, int64_t count) {
    for (int64_t y = 0; y < copies[0].height; y++)
        fill_first(image, width, halvings, row_of(atlas, cols, copies[0], y), y, copies[0].width);
    for (int64_t k = 1; k < count; k++) {
        const uint32_t up = k % 2 ? 0x00010001 : 0x00020002;  // halves go down and up by turns: no copy grows brighter
        for (int64_t y = 0; y < copies[k].height; y++) {
            const Word* above = row_of(atlas, cols, copies[k - 1], 2 * y);
            const Word* below = row_of(atlas, cols, copies[k - 1], 2 * y + 1);
            Word* row = row_of(atlas, cols, copies[k], y);
            for (int64_t x = 0; x < copies[k].width; x++)
                row[x] = mean_of_four(above[2 * x], above[2 * x + 1], below[2 * x], below[2 * x + 1], up);
        }
    }
    std::vector<uint8_t> space;
    for (int64_t k = 0; k < count; k++) {
        for (int64_t y = 0; y < copies[k].height; y++) {
            double latitude = ((y + 0.5) / copies[k].height - 0.5) * PI;
            double span = std::min(1 / std::cos(latitude), copies[k].width / 2.0);
            if (span > steepest) even_row(row_of(atlas, cols, copies[k], y), copies[k].width, span, space);
        }
        add_border(atlas, cols, copies[k]);
    }
}

// -- what a lens sees

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

// Where some pixels look: in two copies each, the word above and to the left, and how far from it to the right and down.
struct Places {
    int32_t word[2][BLOCK];
    float right[2][BLOCK], down[2][BLOCK], share[BLOCK];  // share: of the coarser copy
};

struct Sphere {
    const uint8_t* atlas;
    int32_t cols, width, height, coarsest;
};

static void find_places(const float* const* rays, const float* fineness, int64_t some, const float* r,
                        const Sphere& sphere, Places& places) {
    const float finest = std::log2(float(sphere.width));
    for (int64_t i = 0; i < some; i++) {
        float a = rays[0][i], b = rays[1][i], c = rays[2][i];
        float x = r[0] * a + r[1] * b + r[2] * c, y = r[3] * a + r[4] * b + r[5] * c, z = r[6] * a + r[7] * b + r[8] * c;
        float turn = arctangent(x, z) * float(0.5 / PI) + 0.5f;
        float fall = arctangent(y, std::sqrt(x * x + z * z)) * float(1 / PI) + 0.5f;
        float level = fineness[i] + finest;
        level = level < 0 ? 0 : level;
        level = level > sphere.coarsest ? sphere.coarsest : level;
        int32_t fine = static_cast<int32_t>(level);
        places.share[i] = level - fine;
        for (int32_t k = 0; k < 2; k++) {
            int32_t copy = std::min(fine + k, sphere.coarsest);
            int32_t width = sphere.width >> copy, height = sphere.height >> copy;
            int32_t top = 2 * copy + 2 * (sphere.height - height);  // of all finer copies, with their borders
            float u = turn * width + 0.5f, v = fall * height + 0.5f;  // centres at whole numbers, the border counted
            int32_t col = std::min(static_cast<int32_t>(u), width), row = std::min(static_cast<int32_t>(v), height);
            places.right[k][i] = u - col;
            places.down[k][i] = v - row;
            places.word[k][i] = sphere.cols * (top + row) + col;
        }
    }
}

static inline Floats fetched(const Sphere& sphere, int32_t word, float right, float down) {
    const uint8_t* above = sphere.atlas + 4 * int64_t(word);
    const uint8_t* below = above + 4 * int64_t(sphere.cols);
#ifdef __AVX2__
    __m256 upper = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(above))));
    __m256 lower = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(below))));
    __m256 both = upper + down * (lower - upper);
    Floats first = (Floats)_mm256_castps256_ps128(both), second = (Floats)_mm256_extractf128_ps(both, 1);
#else
    const Word *a = reinterpret_cast<const Word*>(above), *b = reinterpret_cast<const Word*>(below);
    Floats corner[4];
    for (int k = 0; k < 4; k++) corner[k] = __builtin_convertvector(widened(k < 2 ? a[k] : b[k - 2]), Floats);
    Floats first = corner[0] + down * (corner[2] - corner[0]), second = corner[1] + down * (corner[3] - corner[1]);
#endif
    return first + right * (second - first);
}

static void look_along(const float* const* rays, const float* fineness, const uint8_t* exists, int64_t pixels,
                       const float* r, const Sphere& sphere, Word* line) {
    Places places;
    for (int64_t start = 0; start < pixels; start += BLOCK) {
        int64_t some = std::min<int64_t>(BLOCK, pixels - start);
        const float* from[3] = {rays[0] + start, rays[1] + start, rays[2] + start};
        find_places(from, fineness + start, some, r, sphere, places);
        for (int64_t i = 0; i < some; i++) {
            if (!exists[start + i]) {
                line[start + i] = 0;
                continue;
            }
            Floats colour = fetched(sphere, places.word[0][i], places.right[0][i], places.down[0][i]);
            if (places.share[i] > 0) {
                Floats coarse = fetched(sphere, places.word[1][i], places.right[1][i], places.down[1][i]);
                colour += places.share[i] * (coarse - colour);
            }
            line[start + i] = rounded(colour);
        }
    }
}

// Y'CbCr of BT.709 in the range of television, in 15 bits after the point: planes.py has the same numbers.
static void luma_of(const Word* line, int64_t width, uint8_t* out) {
    for (int64_t x = 0; x < width; x++) {
        int32_t red = line[x] & 255, green = line[x] >> 8 & 255, blue = line[x] >> 16 & 255;
        out[x] = (5983 * red + 20127 * green + 2032 * blue + (33 << 14)) >> 15;
    }
}

static void chroma_of(const Word* above, const Word* below, int64_t width, uint8_t* blues, uint8_t* reds) {
    constexpr uint32_t EVEN = 0x00ff00ff;
    for (int64_t x = 0; x < width / 2; x++) {
        uint32_t a = above[2 * x], b = above[2 * x + 1], c = below[2 * x], d = below[2 * x + 1];
        uint32_t even = (a & EVEN) + (b & EVEN) + (c & EVEN) + (d & EVEN);
        int32_t red = even & 0xffff, blue = even >> 16;
        int32_t green = (a >> 8 & 255) + (b >> 8 & 255) + (c >> 8 & 255) + (d >> 8 & 255);
        blues[x] = (-3298 * red - 11094 * green + 14392 * blue + (257 << 16)) >> 17;
        reds[x] = (14392 * red - 13072 * green - 1320 * blue + (257 << 16)) >> 17;
    }
}

// Into red, green, blue, pixel by pixel; or, if `planar`, into a plane of luma and two of chroma at half the size.
extern "C" void sphere_look(const float* rays, const float* fineness, const uint8_t* exists, int64_t width,
                            int64_t height, const float* r, const uint8_t* atlas, int64_t cols, const Copy* copies,
                            int64_t count, int64_t planar, uint8_t* out) {
    const Sphere sphere = {atlas, int32_t(cols), int32_t(copies[0].width), int32_t(copies[0].height), int32_t(count - 1)};
    const int64_t pixels = width * height;
    std::vector<uint32_t> lines(2 * width);
    for (int64_t y = 0; y < height; y++) {
        Word* line = lines.data() + (y % 2) * width;
        const int64_t start = y * width;
        const float* from[3] = {rays + start, rays + pixels + start, rays + 2 * pixels + start};
        look_along(from, fineness + start, exists + start, width, r, sphere, line);
        if (!planar) {
            for (int64_t x = 0; x < width; x++) std::memcpy(out + 3 * (start + x), line + x, 3);
            continue;
        }
        luma_of(line, width, out + start);
        uint8_t* blues = out + pixels + (y / 2) * (width / 2);
        if (y % 2) chroma_of(lines.data(), lines.data() + width, width, blues, blues + pixels / 4);
    }
}
