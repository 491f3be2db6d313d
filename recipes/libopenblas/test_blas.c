/* Solve equations and multiply matrices in one thread, in two threads, and in a forked child,
   in two threads on one processor. The optional argument is the name of the expected
   kernels. */
#define _GNU_SOURCE
#include <cblas.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N = 300 };

void dgesv_(const int *n, const int *nrhs, double *a, const int *lda, int *pivots,
            double *b, const int *ldb, int *info);

/* Return the largest absolute entry of inv(A) A - I, for a well-conditioned matrix A. */
static double compute_error(int threads)
{
    static double a[N * N], lu[N * N], inverse[N * N], product[N * N];
    int n = N, info, pivots[N];
    double worst = 0;

    openblas_set_num_threads(threads);
    for (int i = 0; i < N * N; i++) {
        a[i] = i * 37 % 101 / 101.0 + (i % (N + 1) == 0) * N;
        inverse[i] = product[i] = i % (N + 1) == 0;
    }
    memcpy(lu, a, sizeof a);
    dgesv_(&n, &n, lu, &n, pivots, inverse, &n, &info);
    if (info != 0)
        return INFINITY;
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1.0, inverse, N, a, N, -1.0,
                product, N);
    for (int i = 0; i < N * N; i++)
        worst = fmax(worst, fabs(product[i]));
    return worst;
}

/* Return the processor time of 200 small matrix products, in seconds. */
static double time_products(int threads)
{
    static double a[N * N], product[N * N];
    clock_t start;

    openblas_set_num_threads(threads);
    start = clock();
    for (int i = 0; i < 200; i++)
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, 100, 100, 100, 1.0, a, N, a, N, 0.0,
                    product, N);
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

/* Return whether two threads on one processor compute correct results, and use less than 10
   times the processor time of one thread. They would use 50 times this time if a waiting
   thread kept the processor until its time slice ends. */
static int test_shared_processor(double limit)
{
    cpu_set_t one;
    int cpu = sched_getcpu();
    double alone, together;

    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    /* OpenBLAS starts new threads in a child, and they inherit this thread's affinity. */
    if (sched_setaffinity(0, sizeof one, &one) != 0 || !(compute_error(2) < limit))
        return 0;
    alone = time_products(1), together = time_products(2);
    printf("two threads on one processor: %.1f times the time of one\n", together / alone);
    return together < 10 * alone;
}

int main(int argc, char **argv)
{
    const char *type = openblas_get_corename();
    const double limit = 1e-12, alone = compute_error(1), together = compute_error(2);
    int status;

    printf("%s: %g %g\n", type, alone, together);
    fflush(stdout);
    if (fork() == 0)
        exit(!test_shared_processor(limit));
    wait(&status);
    return status != 0 || !(alone < limit) || !(together < limit) ||
           (argc > 1 && strcmp(argv[1], type) != 0);
}
