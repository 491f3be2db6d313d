/* Solve and multiply with the kernels of the processor type in the first
   argument: in one thread, in two, and in two of a forked child. */
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
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

int main(int argc, char **argv)
{
    const char *type = openblas_get_corename();
    const double limit = 1e-12, alone = error(1), together = error(2);
    int status;

    printf("%s: %g %g\n", type, alone, together);
    fflush(stdout);
    if (fork() == 0)
        _exit(!(error(2) < limit));
    wait(&status);
    return status != 0 || !(alone < limit) || !(together < limit) ||
           (argc > 1 && strcmp(argv[1], type) != 0);
}
