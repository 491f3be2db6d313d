/* Call a BLAS library as gfortran's code does, and in a forked child. The argument is the
   library's file. The exit status has a bit for each wrong result. */
#include <complex.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 500, COLUMN_MAJOR = 102, NO_TRANSPOSE = 111 };

typedef double complex dot(const int *, const double complex *, const int *,
                           const double complex *, const int *);
typedef double complex divide(const double complex *, const double complex *);
typedef void gemm(int, int, int, int, int, int, double, const double *, int, const double *, int,
                  double, double *, int);

static double a[N * N], product[N * N];

static int multiplies(gemm *cblas_dgemm)
{
    for (int i = 0; i < N * N; i++)
        a[i] = i % 7;
    cblas_dgemm(COLUMN_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, N, N, N, 1.0, a, N, a, N, 0.0, product,
                N);
    double expected = 0;
    for (int i = 0; i < N; i++)
        expected += a[i * N] * a[i];
    return product[0] == expected;
}

int main(int argc, char **argv)
{
    void *library = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        puts(dlerror());
        return 1;
    }
    const int n = 2, one = 1;
    const double complex x[] = {1 + 2 * I, 3 - I}, y[] = {2 - I, 5 * I};
    const double complex quotient = ((divide *)dlsym(library, "zladiv_"))(x, y);
    int status, wrong = 0;

    wrong |= (((dot *)dlsym(library, "zdotu_"))(&n, x, &one, y, &one) != 9 + 18 * I) << 0;
    wrong |= (((dot *)dlsym(library, "zdotc_"))(&n, x, &one, y, &one) != -5 + 10 * I) << 1;
    wrong |= !(cabs(quotient - I) < 1e-15) << 2;
    wrong |= !multiplies((gemm *)dlsym(library, "cblas_dgemm")) << 3;
    if (fork() == 0) {
        alarm(60);
        _exit(!multiplies((gemm *)dlsym(library, "cblas_dgemm")));
    }
    wait(&status);
    wrong |= (status != 0) << 4;
    printf("%s: %#x\n", argv[argc - 1], wrong);
    return wrong;
}
