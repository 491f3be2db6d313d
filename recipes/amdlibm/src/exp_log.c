/* exp and log on vectors, for AVX-512. They take about two thirds of libmvec's time.
   Processors without AVX-512 use libmvec's exp and log.

   exp: x = n (log 2) / 16 + r, and e^x = 2^(n / 16) (1 + r + r^2 P(r)). Registers contain
   the 16 powers 2^(j / 16). The instruction scalef multiplies by the integer part of
   2^(n / 16); it rounds subnormal results, and handles infinities and NaN. The rounding of
   the power and of the result causes an error of 1 unit in the last place. The other errors
   are 0.1 unit.

   log: x = 2^e m, with m in [0.75, 1.5). This interval is divided into 16 parts, each with
   a reciprocal c. r = c m - 1, and log x = e log 2 - log c + (r + r^2 Q(r)). Near 1, e and
   log c are 0, so no digits cancel. e log 2 - log c, its terms and the result are rounded.
   Each rounding causes an error of half a unit, or of 1 unit where the result is smaller
   than the terms. The instructions that compute e and m handle subnormal arguments, 0 and
   infinity.

   The functions have libmvec's names, so that within this library the linker uses them
   instead of libmvec's. exp_log_constants.py prints the constants. */
#include <immintrin.h>
#include <math.h>

#define FLOAT_STEP_HIGH 0x1.62e43p-5f
#define FLOAT_STEP_LOW -0x1.05c61p-33f
#define FLOAT_P0 0x1.000222p-1f
#define FLOAT_P1 0x1.55572p-3f
#define FLOAT_ROOTS \
    0x1p+0f, 0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f, \
    0x1.306fep+0f, 0x1.3dea64p+0f, 0x1.4bfdaep+0f, 0x1.5ab07ep+0f, \
    0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f, \
    0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f
/* error 2^-29.23 */
#define FLOAT_LN2 0x1.62e43p-1f
#define FLOAT_RECIPROCALS \
    0x1p+0f, 0x1.d41d42p-1f, 0x1.bacf92p-1f, 0x1.a41a42p-1f, \
    0x1.8f9c18p-1f, 0x1.7d05f4p-1f, 0x1.6c16c2p-1f, 0x1.5c9882p-1f, \
    0x1.4e5e0ap+0f, 0x1.414142p+0f, 0x1.3521dp+0f, 0x1.29e412p+0f, \
    0x1.1f7048p+0f, 0x1.15b1e6p+0f, 0x1.0c9714p+0f, 0x1p+0f
#define FLOAT_LOGS \
    0, 0x1.6f0d28p-4f, 0x1.29552cp-3f, 0x1.9525a8p-3f, \
    0x1.fb918cp-3f, 0x1.2e8e2cp-2f, 0x1.5d1bdap-2f, 0x1.89a33ap-2f, \
    -0x1.1178e6p-2f, -0x1.d10384p-3f, -0x1.823c18p-3f, -0x1.365fc6p-3f, \
    -0x1.da7278p-4f, -0x1.4d3116p-4f, -0x1.894a84p-5f, 0
#define FLOAT_Q0 -0x1p-1f
#define FLOAT_Q1 0x1.555516p-2f
#define FLOAT_Q2 -0x1.ffff78p-3f
#define FLOAT_Q3 0x1.9b326ap-3f
#define FLOAT_Q4 -0x1.56d7ccp-3f
/* error 2^-31.45 r */
#define DOUBLE_STEP_HIGH 0x1.62e42fefa39efp-5
#define DOUBLE_STEP_LOW 0x1.abc9e3b39803fp-60
#define DOUBLE_P0 0x1.0000000000004p-1
#define DOUBLE_P1 0x1.555555548b9fep-3
#define DOUBLE_P2 0x1.5555555484fb3p-5
#define DOUBLE_P3 0x1.11123cf1e1548p-7
#define DOUBLE_P4 0x1.6c183d97c994dp-10
#define DOUBLE_ROOTS \
    0x1p+0, 0x1.0b5586cf9890fp+0, 0x1.172b83c7d517bp+0, 0x1.2387a6e756238p+0, \
    0x1.306fe0a31b715p+0, 0x1.3dea64c123422p+0, 0x1.4bfdad5362a27p+0, 0x1.5ab07dd485429p+0, \
    0x1.6a09e667f3bcdp+0, 0x1.7a11473eb0187p+0, 0x1.8ace5422aa0dbp+0, 0x1.9c49182a3f09p+0, \
    0x1.ae89f995ad3adp+0, 0x1.c199bdd85529cp+0, 0x1.d5818dcfba487p+0, 0x1.ea4afa2a490dap+0
/* error 2^-56.20 */
#define DOUBLE_LN2 0x1.62e42fefa39efp-1
#define DOUBLE_RECIPROCALS \
    0x1p+0, 0x1.d41d41d41d41dp-1, 0x1.bacf914c1badp-1, 0x1.a41a41a41a41ap-1, \
    0x1.8f9c18f9c18fap-1, 0x1.7d05f417d05f4p-1, 0x1.6c16c16c16c17p-1, 0x1.5c9882b931057p-1, \
    0x1.4e5e0a72f0539p+0, 0x1.4141414141414p+0, 0x1.3521cfb2b78c1p+0, 0x1.29e4129e4129ep+0, \
    0x1.1f7047dc11f7p+0, 0x1.15b1e5f75270dp+0, 0x1.0c9714fbcda3bp+0, 0x1p+0
#define DOUBLE_LOGS \
    0, 0x1.6f0d28ae56b4ep-4, 0x1.29552f81ff521p-3, 0x1.9525a9cf456b6p-3, \
    0x1.fb9186d5e3e29p-3, 0x1.2e8e2bae11d31p-2, 0x1.5d1bdbf5809cap-2, 0x1.89a3386c1425bp-2, \
    -0x1.1178e8227e47ap-2, -0x1.d1037f2655e7bp-3, -0x1.823c16551a3cp-3, -0x1.365fcb0159014p-3, \
    -0x1.da7276384469ep-4, -0x1.4d3115d207eacp-4, -0x1.894aa149fb34bp-5, 0
#define DOUBLE_Q0 -0x1.0000000000007p-1
#define DOUBLE_Q1 0x1.5555555555576p-2
#define DOUBLE_Q2 -0x1.ffffffffdbf55p-3
#define DOUBLE_Q3 0x1.9999999960b3ap-3
#define DOUBLE_Q4 -0x1.5555562194672p-3
#define DOUBLE_Q5 0x1.24924a27e4ae7p-3
#define DOUBLE_Q6 -0x1.fffc54cc8c77ap-4
#define DOUBLE_Q7 0x1.c7186729ee0ep-4
#define DOUBLE_Q8 -0x1.9d47074734c44p-4
#define DOUBLE_Q9 0x1.7806ab623e106p-4
/* error 2^-57.50 r */

/* The functions limit arguments to these absolute values. At the limits, the results are already
   infinite or 0, and n is still exact. */
#define FLOAT_LARGEST 200
#define DOUBLE_LARGEST 1000

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
#define FIRST_8(a, b, c, d, e, f, g, h, ...) a, b, c, d, e, f, g, h
#define LAST_8(a, b, c, d, e, f, g, h, ...) __VA_ARGS__
#define OF(macro, ...) macro(__VA_ARGS__)

#pragma GCC visibility push(hidden)

TARGET __m512 _ZGVeN16v_expf(__m512 x)
{
    const __m512 roots = (__m512){FLOAT_ROOTS};
    /* The lowest bits of shifted contain n. */
    const __m512 shift = _mm512_set1_ps(0x1.8p23f);
    /* If an operand is NaN, max and min return the second operand. So NaN stays NaN. */
    const __m512 least = _mm512_max_ps(_mm512_set1_ps(-FLOAT_LARGEST), x);
    const __m512 inside = _mm512_min_ps(_mm512_set1_ps(FLOAT_LARGEST), least);
    const __m512 shifted = _mm512_fmadd_ps(inside, _mm512_set1_ps(1 / FLOAT_STEP_HIGH), shift);
    const __m512 n = shifted - shift;
    const __m512 main = _mm512_fnmadd_ps(n, _mm512_set1_ps(FLOAT_STEP_HIGH), inside);
    const __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(FLOAT_STEP_LOW), main);
    const __m512 p = _mm512_fmadd_ps(r, _mm512_set1_ps(FLOAT_P1), _mm512_set1_ps(FLOAT_P0));
    const __m512 q = _mm512_fmadd_ps(r * r, p, r);
    const __m512 root = _mm512_permutexvar_ps((__m512i)shifted, roots);

    return _mm512_scalef_ps(_mm512_fmadd_ps(root, q, root), n * 0x1p-4f);
}

TARGET __m512d _ZGVeN8v_exp(__m512d x)
{
    const __m512d roots = {OF(FIRST_8, DOUBLE_ROOTS)}, others = {OF(LAST_8, DOUBLE_ROOTS)};
    const __m512d shift = _mm512_set1_pd(0x1.8p52);
    const __m512d least = _mm512_max_pd(_mm512_set1_pd(-DOUBLE_LARGEST), x);
    const __m512d inside = _mm512_min_pd(_mm512_set1_pd(DOUBLE_LARGEST), least);
    const __m512d shifted = _mm512_fmadd_pd(inside, _mm512_set1_pd(1 / DOUBLE_STEP_HIGH), shift);
    const __m512d n = shifted - shift;
    const __m512d main = _mm512_fnmadd_pd(n, _mm512_set1_pd(DOUBLE_STEP_HIGH), inside);
    const __m512d r = _mm512_fnmadd_pd(n, _mm512_set1_pd(DOUBLE_STEP_LOW), main);
    const __m512d p3 = _mm512_fmadd_pd(r, _mm512_set1_pd(DOUBLE_P4), _mm512_set1_pd(DOUBLE_P3));
    const __m512d p2 = _mm512_fmadd_pd(r, p3, _mm512_set1_pd(DOUBLE_P2));
    const __m512d p1 = _mm512_fmadd_pd(r, p2, _mm512_set1_pd(DOUBLE_P1));
    const __m512d p = _mm512_fmadd_pd(r, p1, _mm512_set1_pd(DOUBLE_P0));
    const __m512d q = _mm512_fmadd_pd(r * r, p, r);
    const __m512d root = _mm512_permutex2var_pd(roots, (__m512i)shifted, others);

    return _mm512_scalef_pd(_mm512_fmadd_pd(root, q, root), n * 0x1p-4);
}

TARGET __m512 _ZGVeN16v_logf(__m512 x)
{
    const __m512 one = _mm512_set1_ps(1);
    /* The highest 4 bits of the fraction are the part's number. */
    const __m512 m = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_zero);
    const __m512i part = _mm512_srli_epi32((__m512i)m, 19);
    const __m512 binade = _mm512_getexp_ps(x);
    const __mmask16 halved = _mm512_cmp_ps_mask(m, one, _CMP_LT_OQ);
    const __m512 e = _mm512_mask_add_ps(binade, halved, binade, one);
    const __m512 reciprocal = _mm512_permutexvar_ps(part, (__m512){FLOAT_RECIPROCALS});
    const __m512 base = _mm512_permutexvar_ps(part, (__m512){FLOAT_LOGS});
    const __m512 r = _mm512_fmsub_ps(m, reciprocal, one);
    const __m512 q3 = _mm512_fmadd_ps(r, _mm512_set1_ps(FLOAT_Q4), _mm512_set1_ps(FLOAT_Q3));
    const __m512 q2 = _mm512_fmadd_ps(r, q3, _mm512_set1_ps(FLOAT_Q2));
    const __m512 q1 = _mm512_fmadd_ps(r, q2, _mm512_set1_ps(FLOAT_Q1));
    const __m512 q = _mm512_fmadd_ps(r, q1, _mm512_set1_ps(FLOAT_Q0));
    const __m512 high = _mm512_fmadd_ps(e, _mm512_set1_ps(FLOAT_LN2), base);
    const __m512 z = high + _mm512_fmadd_ps(r * r, q, r);
    const __mmask16 negative = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);

    return _mm512_mask_mov_ps(z, negative, _mm512_set1_ps(NAN));
}

TARGET __m512d _ZGVeN8v_log(__m512d x)
{
    const __m512d reciprocals = {OF(FIRST_8, DOUBLE_RECIPROCALS)};
    const __m512d others = {OF(LAST_8, DOUBLE_RECIPROCALS)};
    const __m512d logs = {OF(FIRST_8, DOUBLE_LOGS)}, other_logs = {OF(LAST_8, DOUBLE_LOGS)};
    const __m512d one = _mm512_set1_pd(1);
    const __m512d m = _mm512_getmant_pd(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_zero);
    const __m512i part = _mm512_srli_epi64((__m512i)m, 48);
    const __m512d binade = _mm512_getexp_pd(x);
    const __mmask8 halved = _mm512_cmp_pd_mask(m, one, _CMP_LT_OQ);
    const __m512d e = _mm512_mask_add_pd(binade, halved, binade, one);
    const __m512d reciprocal = _mm512_permutex2var_pd(reciprocals, part, others);
    const __m512d base = _mm512_permutex2var_pd(logs, part, other_logs);
    const __m512d r = _mm512_fmsub_pd(m, reciprocal, one), square = r * r;
#define PAIR(i, j) _mm512_fmadd_pd(r, _mm512_set1_pd(DOUBLE_Q##j), _mm512_set1_pd(DOUBLE_Q##i))
    /* Evaluate the polynomial in pairs of terms: the chain of dependent operations is shorter than
       in Horner's scheme. */
    const __m512d q6 = _mm512_fmadd_pd(square, PAIR(8, 9), PAIR(6, 7));
    const __m512d q4 = _mm512_fmadd_pd(square, q6, PAIR(4, 5));
    const __m512d q2 = _mm512_fmadd_pd(square, q4, PAIR(2, 3));
    const __m512d q = _mm512_fmadd_pd(square, q2, PAIR(0, 1));
    const __m512d high = _mm512_fmadd_pd(e, _mm512_set1_pd(DOUBLE_LN2), base);
    const __m512d z = high + _mm512_fmadd_pd(square, q, r);
    const __mmask8 negative = _mm512_cmp_pd_mask(x, _mm512_setzero_pd(), _CMP_LT_OQ);

    return _mm512_mask_mov_pd(z, negative, _mm512_set1_pd(NAN));
}

#pragma GCC visibility pop
