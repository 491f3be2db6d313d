/* survey LIBRARY own|amd: measure the largest error of each variant of each function in
   a library for Theano's elementwise operations, and find wrong results.

   "own" surveys amdlibm: scalar functions, vector variants with the names of the x86-64
   vector function ABI, and array functions, if the library has them and this processor
   supports them. "amd" surveys the functions of AMD's AOCL-LibM that can replace them.
   The output has a line for each variant, with tabs:

       SYMBOL  FUNCTION  LANES  ERROR  FAILURE

   LANES is 1 for a scalar function and 0 for an array function. ERROR is the largest error
   of finite results, in units in the last place. FAILURE is empty if the error is at most
   BOUND, and NaN, infinities and signed zeros are equal to the exact results. It is "is
   missing" if the library lacks the symbol, and "was not run" if the processor lacks
   instructions.

   Arguments are special values, subnormals, random bits, numbers near the ends of the
   results' range, near the zeros of trigonometric functions, near 1, and of ordinary
   size. The lanes of a vector have arguments of one kind, of two kinds, or of all kinds.
   The C library's long double functions compute the exact results, with an error of 2^-10
   units in the last place of a double. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BOUND 4
#ifndef COUNT
#define COUNT (1 << 16)
#endif
enum { LANES = 16, GUARD = 4, LONGEST = 4 * LANES + 3 };
/* The time limit of a function, in seconds; a function that does not end is wrong. */
enum { SECONDS = 60 };

#define FUNCTIONS(UNARY, BINARY)                                              \
    UNARY(acos) UNARY(acosh) UNARY(asin) UNARY(asinh) UNARY(atan)             \
    UNARY(atanh) UNARY(cos) UNARY(cosh) UNARY(erf) UNARY(erfc)                \
    UNARY(exp) UNARY(exp2) UNARY(expm1) UNARY(log) UNARY(log10)               \
    UNARY(log1p) UNARY(log2) UNARY(sin) UNARY(sinh) UNARY(tan) UNARY(tanh)    \
    BINARY(atan2) BINARY(pow)

struct function {
    const char *name;
    long double (*unary)(long double), (*binary)(long double, long double);
};
#define UNARY(name) {#name, name##l, NULL},
#define BINARY(name) {#name, NULL, name##l},
static const struct function functions[] = {FUNCTIONS(UNARY, BINARY){NULL, NULL, NULL}};
#undef UNARY
#undef BINARY

/* The arguments and results of a function. If `single` is set, the function's type is float,
   and xd and yd have the values of xf and yf. */
struct sample {
    int single;
    float xf[COUNT], yf[COUNT], zf[COUNT];
    double xd[COUNT], yd[COUNT], zd[COUNT];
    long double exact[COUNT];
};
/* The result of a child process, which may crash, in shared memory. */
struct result {
    double worst;
    char failure[160];
};
static struct sample *s;
static struct result *result;

static uint64_t draw(void)
{
    static uint64_t state = 88172645463325252;

    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static double draw_uniform(double low, double high)
{
    return low + (high - low) * ((draw() >> 11) * 0x1p-53);
}

static const double special[] = {
    0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, INFINITY, -INFINITY, NAN, __DBL_DENORM_MIN__,
    -__DBL_DENORM_MIN__, __FLT_DENORM_MIN__, -__FLT_DENORM_MIN__, DBL_MIN, -DBL_MIN, FLT_MIN, -FLT_MIN,
    FLT_MIN / 2,
    DBL_MAX, -DBL_MAX, FLT_MAX, -FLT_MAX, 88.8, -104, 710, -746, 16777217, 4503599627370497, 1e22,
    -1e22,
};
/* Arguments at which exponential, hyperbolic and error functions leave a type's range. */
static const double ends[] = {
    88.72, 87.33, -87.33, -103.97, 709.78, -708.39, -745.13, 89.41, 710.47, 128, -126, -149,
    1024, -1022, -1074, 0.5, 1, 2, 9.19, 10.05, 26.54, 27.22, 5.92, 3.92,
};
#define CHOOSE(values) values[draw() % (sizeof values / sizeof *values)]

enum { SPECIAL, SUBNORMAL, BITS, NEAR_END, TRIGONOMETRIC, NEAR_ONE, ORDINARY, KINDS };

/* Draw an argument of a kind; round it to float if the type is float. */
static double draw_argument(int kind)
{
    const uint64_t bits = draw();
    const int sign = bits & 1 ? 1 : -1;
    double value = 0;

    switch (kind) {
    case SPECIAL:
        return s->single ? (float)CHOOSE(special) : CHOOSE(special);
    case SUBNORMAL:
        value = s->single ? ldexp(1 + draw() % 0x7fffff, -149) :
                            ldexp(1 + draw() % 0xfffffffffffff, -1074);
        return sign * value;
    case BITS:
        if (s->single) {
            float single;
            const uint32_t half = bits >> 32;

            memcpy(&single, &half, sizeof single);
            value = single;
            break;
        }
        memcpy(&value, &bits, sizeof value);
        break;
    case NEAR_END:
        value = CHOOSE(ends) * (1 + sign * ldexp(draw_uniform(0, 1), -(int)(draw() % 24)));
        break;
    case TRIGONOMETRIC:
        value = sign * (draw() >> (2 + draw() % 62)) * (double)M_PI_2l;
        break;
    case NEAR_ONE:
        value = 1 + sign * ldexp(draw_uniform(0, 1), -(int)(draw() % 30));
        value = draw() % 2 ? value : -value;
        break;
    case ORDINARY:
        value = draw_uniform(-30, 30);
    }
    /* Return no signalling NaN: the conversion to long double makes it quiet. */
    if (isnan(value))
        return NAN;
    return s->single ? (float)value : value;
}

/* Fill the sample with all pairs of special values, then with vectors whose lanes are of
   one kind, of one kind except one lane, of two kinds, or of all kinds. */
static void fill(const struct function *function)
{
    const int number = sizeof special / sizeof *special;
    int kinds[2] = {0}, mixture = 0, odd = 0;

    for (int i = 0; i < COUNT; i++) {
        if (i % LANES == 0) {
            mixture = draw() % 4;
            kinds[0] = draw() % KINDS;
            kinds[1] = draw() % KINDS;
            odd = draw() % LANES;
        }
        double *values[] = {&s->xd[i], &s->yd[i]};

        for (int k = 0; k < 2; k++) {
            const int other = mixture == 1 ? i % LANES == odd : mixture == 2 && draw() % 2;

            *values[k] = draw_argument(mixture == 3 ? (int)(draw() % KINDS) : kinds[other]);
        }
        if (i < number * number) {
            s->xd[i] = special[i / number];
            s->yd[i] = special[i % number];
        } else if (function->binary == powl && i % 3 == 0) {
            /* Results over the whole range of the type and beyond. */
            s->xd[i] = fabs(s->xd[i]);
            s->yd[i] = draw_uniform(s->single ? -151 : -1076, s->single ? 129 : 1025) /
                       log2(s->xd[i]);
        }
        s->xf[i] = s->xd[i];
        s->yf[i] = s->yd[i];
        if (s->single) {
            s->xd[i] = s->xf[i];
            s->yd[i] = s->yf[i];
        }
        s->exact[i] = function->unary ? function->unary(s->xd[i]) :
                                        function->binary(s->xd[i], s->yd[i]);
    }
}

static double round_result(long double exact)
{
    return s->single ? (float)exact : (double)exact;
}

/* Compare a variant's result with the exact result for x (and y). */
static void judge(const struct function *function, double got, long double exact, double x, double y)
{
    const double right = round_result(exact);
    const int digits = s->single ? FLT_MANT_DIG : DBL_MANT_DIG;
    const int least = s->single ? FLT_MIN_EXP : DBL_MIN_EXP;
    double error = 0;
    int exponent, bad;

    if (isnan(right))
        bad = !isnan(got);
    else if (isinf(right) || (right == 0 && got == 0))
        bad = got != right || !signbit(got) != !signbit(right);
    else if (!isfinite(got))
        bad = 1;
    else {
        frexp(right, &exponent);
        if (right == 0 || exponent < least)
            exponent = least;
        error = fabsl(got - exact) / ldexpl(1, exponent - digits);
        bad = error > BOUND;
    }
    if (error > result->worst)
        result->worst = error;
    if (bad && *result->failure == 0) {
        char arguments[64];

        snprintf(arguments, sizeof arguments, function->binary ? "%.9g, %.9g" : "%.9g", x, y);
        snprintf(result->failure, sizeof result->failure, "is %.9g, not %.9g, at (%s)", got, right,
                 arguments);
    }
}

static void judge_all(const struct function *function)
{
    for (int i = 0; i < COUNT; i++)
        judge(function, s->single ? (double)s->zf[i] : s->zd[i], s->exact[i], s->xd[i], s->yd[i]);
}

/* Define a loop that calls a vector variant with vectors of an instruction set. */
#define LOOP(lanes, letter, type, instructions)                                             \
    typedef type vector_##letter##lanes __attribute__((vector_size(lanes * sizeof(type)))); \
    __attribute__((target(instructions))) static void loop_##letter##lanes(                 \
        void *symbol, int binary, const type *x, const type *y, type *z)                    \
    {                                                                                       \
        vector_##letter##lanes (*one)(vector_##letter##lanes) = symbol, a, b, c;            \
        vector_##letter##lanes (*two)(vector_##letter##lanes, vector_##letter##lanes) =     \
            symbol;                                                                         \
                                                                                            \
        for (int i = 0; i < COUNT; i += lanes) {                                            \
            memcpy(&a, x + i, sizeof a);                                                    \
            memcpy(&b, y + i, sizeof b);                                                    \
            c = binary ? two(a, b) : one(a);                                                \
            memcpy(z + i, &c, sizeof c);                                                    \
        }                                                                                   \
    }
LOOP(4, b, float, "sse2")
LOOP(8, c, float, "avx")
LOOP(8, d, float, "avx2")
LOOP(16, e, float, "avx512f")
LOOP(2, b, double, "sse2")
LOOP(4, c, double, "avx")
LOOP(4, d, double, "avx2")
LOOP(8, e, double, "avx512f")

#define SCALAR_LOOP(name, type)                                               \
    static void name(void *symbol, int binary, const type *x, const type *y, type *z) \
    {                                                                         \
        type (*one)(type) = symbol, (*two)(type, type) = symbol;              \
                                                                              \
        for (int i = 0; i < COUNT; i++)                                       \
            z[i] = binary ? two(x[i], y[i]) : one(x[i]);                      \
    }
SCALAR_LOOP(loop_float, float)
SCALAR_LOOP(loop_double, double)

/* Compute consecutive arrays of every length less than LONGEST, so that they begin at any
   alignment. The element after an array must not change. */
#define ARRAY_LOOP(name, type)                                                       \
    static void name(void *symbol, int binary, const type *x, const type *y, type *z) \
    {                                                                                \
        void (*one)(ptrdiff_t, const type *, type *) = symbol;                       \
        void (*two)(ptrdiff_t, const type *, const type *, type *) = symbol;         \
                                                                                     \
        for (int i = 0, n = 0; i < COUNT; i += n, n = (n + 1) % LONGEST) {           \
            const int length = n < COUNT - i ? n : COUNT - i;                        \
            const int follows = i + length < COUNT;                                  \
                                                                                     \
            if (follows)                                                             \
                z[i + length] = 123;                                                 \
            if (binary)                                                              \
                two(length, x + i, y + i, z + i);                                    \
            else                                                                     \
                one(length, x + i, z + i);                                           \
            if (follows && z[i + length] != 123)                                     \
                strcpy(result->failure, "writes after the end of an array");         \
        }                                                                            \
    }
ARRAY_LOOP(array_float, float)
ARRAY_LOOP(array_double, double)

struct variant {
    int single, lanes;
    /* The names in amdlibm and in AMD's library. */
    const char *own[2], *amd;
    const char *instructions;
    void (*floats)(void *, int, const float *, const float *, float *);
    void (*doubles)(void *, int, const double *, const double *, double *);
};
static const struct variant variants[] = {
    {1, 1, {"amd_%sf", "amd_%sf"}, "amd_%sf", "", loop_float, NULL},
    {1, 4, {"_ZGVbN4v_amd_%sf", "_ZGVbN4vv_amd_%sf"}, "amd_vrs4_%sf", "", loop_b4, NULL},
    {1, 8, {"_ZGVcN8v_amd_%sf", "_ZGVcN8vv_amd_%sf"}, NULL, "avx", loop_c8, NULL},
    {1, 8, {"_ZGVdN8v_amd_%sf", "_ZGVdN8vv_amd_%sf"}, "amd_vrs8_%sf", "avx2", loop_d8, NULL},
    {1, 16, {"_ZGVeN16v_amd_%sf", "_ZGVeN16vv_amd_%sf"}, "amd_vrs16_%sf", "avx512", loop_e16,
     NULL},
    {1, 0, {"amd_vrsa_%sf", "amd_vrsa_%sf"}, NULL, "", array_float, NULL},
    {0, 1, {"amd_%s", "amd_%s"}, "amd_%s", "", NULL, loop_double},
    {0, 2, {"_ZGVbN2v_amd_%s", "_ZGVbN2vv_amd_%s"}, "amd_vrd2_%s", "", NULL, loop_b2},
    {0, 4, {"_ZGVcN4v_amd_%s", "_ZGVcN4vv_amd_%s"}, NULL, "avx", NULL, loop_c4},
    {0, 4, {"_ZGVdN4v_amd_%s", "_ZGVdN4vv_amd_%s"}, "amd_vrd4_%s", "avx2", NULL, loop_d4},
    {0, 8, {"_ZGVeN8v_amd_%s", "_ZGVeN8vv_amd_%s"}, "amd_vrd8_%s", "avx512", NULL, loop_e8},
    {0, 0, {"amd_vrda_%s", "amd_vrda_%s"}, NULL, "", NULL, array_double},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

static int supports(const char *instructions)
{
    if (strcmp(instructions, "avx") == 0)
        return __builtin_cpu_supports("avx");
    if (strcmp(instructions, "avx2") == 0)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (strcmp(instructions, "avx512") == 0)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    return 1;
}

/* Survey a variant of a function in a child process, because the variant may crash. */
static void survey(const struct function *function, const struct variant *variant, void *symbol)
{
    int status;

    fflush(stdout);
    if (fork() == 0) {
        alarm(SECONDS);
        if (variant->single)
            variant->floats(symbol, function->binary != NULL, s->xf, s->yf, s->zf);
        else
            variant->doubles(symbol, function->binary != NULL, s->xd, s->yd, s->zd);
        judge_all(function);
        _exit(0);
    }
    wait(&status);
    if (status != 0)
        snprintf(result->failure, sizeof result->failure, "ends the process: %s",
                 WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit");
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    const int own = strcmp(arguments[2], "own") == 0;
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL);

    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    s = malloc(sizeof *s);
    result = mmap(NULL, sizeof *result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (const struct function *function = functions; function->name; function++)
        for (s->single = 0; s->single < 2; s->single++) {
            fill(function);
            for (const struct variant *variant = variants; variant < variants + VARIANTS;
                 variant++) {
                const char *format = own ? variant->own[function->binary != NULL] : variant->amd;
                char symbol[64];
                void *address;

                if (variant->single != s->single || format == NULL)
                    continue;
                snprintf(symbol, sizeof symbol, format, function->name);
                /* Search all loaded libraries, like a program that links with the library,
                   so that a preloaded library can replace the function. */
                address = dlsym(RTLD_DEFAULT, symbol);
                memset(result, 0, sizeof *result);
                if (address != NULL && supports(variant->instructions))
                    survey(function, variant, address);
                else if (own)
                    continue;
                else
                    strcpy(result->failure, address == NULL ? "is missing" : "was not run");
                printf("%s\t%s%s\t%d\t%.3g\t%s\n", symbol, function->name, s->single ? "f" : "",
                       variant->lanes, result->worst, result->failure);
            }
        }
    return 0;
}
