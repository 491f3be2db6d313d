// Test amdlibm.h in C++, after the standard library's headers: std::exp compiles for
// all types, and g++ vectorizes a loop whose call of std::exp is in a branch.
#include <cmath>
#include <complex>
#include <random>
#define REPLACE_WITH_AMDLIBM
#include <amdlibm.h>

template <typename T> __attribute__((noipa)) void sigmoid(ptrdiff_t n, const T *x, T *z)
{
#pragma GCC ivdep
    for (ptrdiff_t i = 0; i < n; i++)
        z[i] = x[i] < -80 ? 0 : x[i] > 15 ? T(1) : 1 / (1 + std::exp(-x[i]));
}

int main(int count, char **)
{
    float x[] = {0, float(count)}, z[2];
    double wide[] = {0, double(count)};

    sigmoid(2, x, z);
    sigmoid(2, wide, wide);
    return !(z[0] == 0.5f && wide[0] == 0.5 && std::abs(z[1] - wide[1]) < 1e-6 &&
             std::exp(std::complex<double>(count - 1)) == 1.0 && std::exp(count - 1.0L) == 1 &&
             std::pow(2.0f, count) == 2);
}
