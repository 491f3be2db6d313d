/* Solve A x = b with LAPACK, and check A x - b with CBLAS. */
#include <cblas.h>

void dgesv_(const int *n, const int *nrhs, double *a, const int *lda, int *pivots,
            double *b, const int *ldb, int *info);

int main(void)
{
    enum { N = 3 };
    const int n = N, one = 1;
    const double a[N * N] = {4, 1, 2, 1, 5, 3, 2, 3, 6}, b[N] = {1, 2, 3};
    double lu[N * N], x[N], residual[N];
    int pivots[N], info;

    cblas_dcopy(N * N, a, 1, lu, 1);
    cblas_dcopy(N, b, 1, x, 1);
    dgesv_(&n, &one, lu, &n, pivots, x, &n, &info);
    cblas_dcopy(N, b, 1, residual, 1);
    cblas_dgemv(CblasColMajor, CblasNoTrans, N, N, 1.0, a, N, x, 1, -1.0, residual, 1);
    return info != 0 || cblas_dnrm2(N, residual, 1) > 1e-12;
}
