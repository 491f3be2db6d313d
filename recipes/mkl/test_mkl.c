/* Solve and multiply: inv(A) A must be the identity. */
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 300, COLUMN_MAJOR = 102, NO_TRANSPOSE = 111 };

void cblas_dgemm(int layout, int transpose_a, int transpose_b, int m, int n, int k, double alpha,
                 const double *a, int lda, const double *b, int ldb, double beta, double *c,
                 int ldc);
void dgesv_(const int *n, const int *nrhs, double *a, const int *lda, int *pivots, double *b,
            const int *ldb, int *info);
void MKL_Get_Version_String(char *text, int length);

int main(void)
{
    static double a[N * N], lu[N * N], inverse[N * N], product[N * N];
    int n = N, info, pivots[N];
    char version[200];
    double worst = 0;

    for (int i = 0; i < N * N; i++) {
        a[i] = i * 37 % 101 / 101.0 + (i % (N + 1) == 0) * N;
        inverse[i] = product[i] = i % (N + 1) == 0;
    }
    memcpy(lu, a, sizeof a);
    dgesv_(&n, &n, lu, &n, pivots, inverse, &n, &info);
    cblas_dgemm(COLUMN_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, N, N, N, 1.0, inverse, N, a, N, -1.0,
                product, N);
    for (int i = 0; i < N * N; i++)
        worst = fmax(worst, fabs(product[i]));
    MKL_Get_Version_String(version, sizeof version);
    printf("%.*s: %g\n", (int)sizeof version, version, worst);
    return info != 0 || !(worst < 1e-12);
}
