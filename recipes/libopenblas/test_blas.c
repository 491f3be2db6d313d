/* Solve equations and multiply matrices in one thread, in two threads, and in two threads
   of a forked child that share a processor. The optional argument is the name of the
   expected kernels. */
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

/* Return the largest absolute entry of inv(A) A - I, for an A that is far from singular. */
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

/* Return the processor time of 200 small products in seconds. */
static double seconds(int threads)
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

/* Return whether two threads of this process on one processor compute right results, in
   less than 10 times the processor time of one thread. If a waiting thread kept the other
   thread from the processor until its time slice ended, they would take 50 times as long. */
static int share_a_processor(double limit)
{
    cpu_set_t one;
    int cpu = sched_getcpu();
    double alone, together;

    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    /* OpenBLAS starts new threads in a child, and they inherit this thread's affinity. */
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
