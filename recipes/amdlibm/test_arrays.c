/* Test the array functions: all lengths up to LONGEST, all alignments, in-place and
   separate results, special values in single elements, and more elements than an int can
   count. */
#define _GNU_SOURCE
#include <amdlibm.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LONGEST = 70, ALIGNMENTS = 17 };
static int failures;

static void check(int right, const char *name, ptrdiff_t n)
{
    if (!right && failures++ < 20)
        printf("%s is wrong on %td elements\n", name, n);
}

/* Return whether x and y are equal, or differ by less than 2^-22 of y, or are both NaN.
   Zeros are equal only if they have the same sign. */
static int near(float x, float y)
{
    if (isnan(x))
        return isnan(y);
    return (x == y && !signbit(x) == !signbit(y)) || fabsf(x - y) < 0x1p-22f * fabsf(y);
}

/* Define a test of functions (n, x, z) of a type; unit is the type's epsilon. */
#define TEST(type, unit)                                                                \
    static void test_##type(const char *name,                                           \
                            void (*function)(ptrdiff_t, const type *, type *),          \
                            long double (*exact)(long double))                          \
    {                                                                                   \
        for (int n = 0; n <= LONGEST; n++)                                              \
            for (int start = 1; start <= ALIGNMENTS; start++)                           \
                for (int in_place = 0; in_place < 2; in_place++) {                      \
                    type x[LONGEST + ALIGNMENTS + 1], y[LONGEST + ALIGNMENTS + 1];      \
                    type *z = in_place ? x : y;                                         \
                                                                                        \
                    for (int i = 0; i < n; i++)                                         \
                        x[start + i] = (i + 1) / (type)16;                              \
                    z[start - 1] = z[start + n] = 123;                                  \
                    function(n, x + start, z + start);                                  \
                    check(z[start - 1] == 123 && z[start + n] == 123, name, n);         \
                    for (int i = 0; i < n; i++) {                                       \
                        long double value = exact((i + 1) / 16.0L);                     \
                                                                                        \
                        check(fabsl(z[start + i] - value) <= 4 * unit * fabsl(value),   \
                              name, n);                                                 \
                    }                                                                   \
                }                                                                       \
    }
TEST(float, 0x1p-23L)
TEST(double, 0x1p-52L)

static void powf_self(ptrdiff_t n, const float *x, float *z)
{
    amd_vrsa_powf(n, x, x, z);
}

static long double power_self(long double x)
{
    return powl(x, x);
}

static void powxf_cubed(ptrdiff_t n, const float *x, float *z)
{
    amd_vrsa_powxf(n, x, 3, z);
}

static long double power_cubed(long double x)
{
    return x * x * x;
}

/* Test powf with each pair of special values in each lane of a vector. The other lanes
   must have the same results as without special values. */
static void test_powf_special(void)
{
    static const float special[] = {
        0, -0.0f, 1, -1, -2, -3, 0.5f, INFINITY, -INFINITY, NAN, 0x1p-149f, -0x1p-149f,
        0x1.fffffep127f, -0x1.fffffep127f, 0x1p24f, 200, -200,
    };
    enum { SPECIAL = sizeof special / sizeof *special, LANES = 16 };
    float x[LANES], y[LANES], z[LANES], zx[LANES];

    for (int pair = 0; pair < SPECIAL * SPECIAL; pair++)
        for (int lane = 0; lane < LANES; lane++) {
            const float xs = special[pair / SPECIAL], ys = special[pair % SPECIAL];
            const float expected = powf(xs, ys);

            for (int i = 0; i < LANES; i++) {
                x[i] = i == lane ? xs : 2;
                y[i] = i == lane ? ys : i - 8;
            }
            amd_vrsa_powf(LANES, x, y, z);
            amd_vrsa_powxf(LANES, x, ys, zx);
            check(near(z[lane], expected), "amd_vrsa_powf", LANES);
            check(near(zx[lane], expected), "amd_vrsa_powxf", LANES);
            for (int i = 0; i < LANES; i++) {
                check(i == lane || z[i] == ldexpf(1, i - 8), "amd_vrsa_powf", LANES);
                check(i == lane || near(zx[i], powf(2, ys)), "amd_vrsa_powxf", LANES);
            }
        }
}

/* Map 2^31 floats and one page more, which are all 0. To need little memory, map the same
   block of a file repeatedly; only the last page is separate. Return NULL if a system call
   fails. */
static float *map(void)
{
    const size_t block = 1 << 26, size = (sizeof(float) << 31) + 4096;
    const int file = memfd_create("block", 0);
    char *start = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (file < 0 || ftruncate(file, block) != 0 || start == MAP_FAILED)
        return NULL;
    for (size_t offset = 0; offset + block <= size; offset += block)
        if (mmap(start + offset, block, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                 0) == MAP_FAILED)
            return NULL;
    return (float *)start;
}

static void test_huge(void)
{
    const ptrdiff_t n = ((ptrdiff_t)1 << 31) + 100;
    float *x = map();

    if (x == NULL) {
        perror("memory for 2^31 elements");
        failures++;
        return;
    }
    amd_vrsa_cosf(n, x, x);
    check(x[n - 1] == 1 && x[n] == 0, "amd_vrsa_cosf", n);
}

#define FLOAT(name) test_float("amd_vrsa_" #name "f", amd_vrsa_##name##f, name##l);
#define DOUBLE(name) test_double("amd_vrda_" #name, amd_vrda_##name, name##l);

int main(void)
{
    FLOAT(cos) FLOAT(exp) FLOAT(log) FLOAT(log10) FLOAT(log2) FLOAT(sin)
    DOUBLE(cos) DOUBLE(exp) DOUBLE(log) DOUBLE(log10) DOUBLE(log2) DOUBLE(sin)
    test_float("amd_vrsa_powf", powf_self, power_self);
    test_float("amd_vrsa_powxf", powxf_cubed, power_cubed);
    test_powf_special();
    test_huge();
    return failures != 0;
}
