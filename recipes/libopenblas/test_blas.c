/* Solve and multiply with the kernels of the processor type in the first
   argument: in one thread, in two, and in two of a forked child, which share a
   processor. */
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

/* The largest entry of inv(A) A - I, for an A that is far from singular. */
static double error(int threads)
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

/* Seconds of processor time that small products take. */
static double seconds(int threads)
{
    static double a[N * N], product[N * N];
    clock_t begun;

    openblas_set_num_threads(threads);
    begun = clock();
    for (int i = 0; i < 200; i++)
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, 100, 100, 100, 1.0, a, N, a, N, 0.0,
                    product, N);
    return (double)(clock() - begun) / CLOCKS_PER_SEC;
}

/* Whether two threads of this process are right where there is a processor for one, and do not keep
   it from each other: one that waits for the other until its time slice ends takes 50 times as long. */
static int share_a_processor(double limit)
{
    cpu_set_t one;
    int cpu = sched_getcpu();
    double alone, together;

    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    /* OpenBLAS starts its threads anew in a child, where this one may run. */
    if (sched_setaffinity(0, sizeof one, &one) != 0 || !(error(2) < limit))
        return 0;
    alone = seconds(1), together = seconds(2);
    printf("two threads on one processor: %.1f times the time of one\n", together / alone);
    return together < 10 * alone;
}

int main(int argc, char **argv)
{
    const char *type = openblas_get_corename();
    const double limit = 1e-12, alone = error(1), together = error(2);
    int status;

    printf("%s: %g %g\n", type, alone, together);
    fflush(stdout);
    if (fork() == 0)
        exit(!share_a_processor(limit));
    wait(&status);
    return status != 0 || !(alone < limit) || !(together < limit) ||
           (argc > 1 && strcmp(argv[1], type) != 0);
}
