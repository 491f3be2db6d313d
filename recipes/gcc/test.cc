// Test exceptions, threads, functions with several versions in glibc, and a variable with several names.
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>
#include <vector>

int main()
{
    std::vector<double> values(1000, 1.0);
#pragma omp parallel for
    for (int i = 0; i < 1000; i++)
        values[i] = std::log(std::exp(values[i]) * std::pow(values[i], 2.0));
    if (environ == nullptr || *environ == nullptr || setenv("A", "1", 1) != 0)
        return EXIT_FAILURE;
    try {
        if (std::fabs(values.at(7) - 1) < 1e-12)
            values.at(1000);
    } catch (const std::out_of_range &) {
        return EXIT_SUCCESS;
    }
    return EXIT_FAILURE;
}
