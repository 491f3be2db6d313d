#ifndef THEANO_THUNKS_POOLING_KERNELS_H
#define THEANO_THUNKS_POOLING_KERNELS_H

/* Kernels of poolings. A kernel processes several windows of the same shape: either a
 * row of windows, which are next to each other along the last pooled dimension, or
 * windows at the same position of several images. The last pooled dimension has the
 * columns of a window. Vectors have an element for each of several windows. */

#include <Python.h>
#include <numpy/arrayobject.h>
#include <algorithm>

namespace {

/* Some windows. `pooled` has the result of each window, and `terms` the gradient of the
 * result. `sums` has the gradient of x. Distances are numbers of elements. */
template <typename T> struct windows {
    npy_intp n_windows, n_rows, n_columns;
    const T *x, *terms;
    T *sums, *pooled;
    /* The distances between rows, columns and windows. The columns of `sums` are
     * adjacent. */
    npy_intp x_row, x_column, x_window, sums_row, sums_window, pooled_window,
        terms_window;
    /* The number by which an average divides. */
    T divisor;
    /* Whether no rows of these windows were processed before. */
    bool is_first;
};

template <typename T> struct lanes {
    enum { N = 16 / sizeof(T) };
    typedef T vector __attribute__((vector_size(16)));
    typedef decltype(vector() > vector()) integers;

    static vector load(const T *x) {
        vector v;
        memcpy(&v, x, sizeof(v));
        return v;
    }

    static void store(T *x, vector v) {
        memcpy(x, &v, sizeof(v));
    }

    static vector gather(const T *x, npy_intp distance) {
        vector v;
        for (int i = 0; i < N; i++)
            v[i] = x[i * distance];
        return v;
    }

    static void scatter(T *x, npy_intp distance, vector v) {
        for (int i = 0; i < N; i++)
            x[i * distance] = v[i];
    }

    /* Return every second element of low and high, from number `first` on. */
    static vector every_second(vector low, vector high, int first) {
        integers numbers;
        for (int i = 0; i < N; i++)
            numbers[i] = first + 2 * i;
        return __builtin_shuffle(low, high, numbers);
    }

    /* Repeat each element n times; return vector number i of the n vectors. */
    static vector repeat(vector v, int n, int i) {
        integers numbers;
        for (int k = 0; k < N; k++)
            numbers[k] = (i * N + k) / n;
        return __builtin_shuffle(v, numbers);
    }

    /* Return vector number i of n vectors that repeat the numbers 0 to n - 1. */
    static integers count(int n, int i) {
        integers numbers;
        for (int k = 0; k < N; k++)
            numbers[k] = (i * N + k) % n;
        return numbers;
    }
};

/* Return a > b ? a : b, with one instruction. */
static inline lanes<float>::vector select_larger(lanes<float>::vector a,
                                                 lanes<float>::vector b) {
    return __builtin_ia32_maxps(a, b);
}

static inline lanes<double>::vector select_larger(lanes<double>::vector a,
                                                  lanes<double>::vector b) {
    return __builtin_ia32_maxpd(a, b);
}

/* Operations of windows. `start` does not change the result of a window that has
 * elements. */
struct sum {
    static double start() {
        return 0;
    }

    template <typename V> static V add(V sum, V a) {
        return sum + a;
    }
};

struct maximum {
    static double start() {
        return -__builtin_inf();
    }

    template <typename V> static V add(V maximum, V a) {
        return a != a ? a : select_larger(a, maximum);
    }
};

/* Add the elements of window number i to its result. As a number in a vector avoids
 * conditional moves between registers, this is faster than with scalars. */
template <typename Operation, typename T>
static inline void pool_window(const windows<T> &w, npy_intp i) {
    typedef typename lanes<T>::vector V;
    T *const result = w.pooled + i * w.pooled_window;
    V pooled = {w.is_first ? (T)Operation::start() : *result};
    for (npy_intp row = 0; row < w.n_rows; row++) {
        const T *x = w.x + row * w.x_row + i * w.x_window;
        for (npy_intp k = 0; k < w.n_columns; k++)
            pooled = Operation::add(pooled, V{x[k * w.x_column]});
    }
    *result = pooled[0];
}

/* Add the elements of N windows, from number i on, to their results. If STRIDE is not
 * 0, it is the distance between windows, and columns and results are adjacent. */
template <typename Operation, int STRIDE, typename T>
static inline void pool_windows(const windows<T> &w, npy_intp i) {
    typedef lanes<T> L;
    const npy_intp column = STRIDE ? 1 : w.x_column;
    const npy_intp distance = STRIDE ? STRIDE : w.x_window;
    const npy_intp n_pairs = STRIDE == 2 ? w.n_columns / 2 : 0;
    T *const results = w.pooled + i * (STRIDE ? 1 : w.pooled_window);
    auto pooled = w.is_first ? typename L::vector() + (T)Operation::start()
                  : STRIDE   ? L::load(results)
                             : L::gather(results, w.pooled_window);
    for (npy_intp row = 0; row < w.n_rows; row++) {
        const T *x = w.x + row * w.x_row + i * distance;
        for (npy_intp k = 0; k < n_pairs; k++) {
            const auto low = L::load(x + 2 * k), high = L::load(x + 2 * k + L::N);
            pooled = Operation::add(pooled, L::every_second(low, high, 0));
            pooled = Operation::add(pooled, L::every_second(low, high, 1));
        }
        for (npy_intp k = 2 * n_pairs; k < w.n_columns; k++)
            pooled = Operation::add(pooled, STRIDE == 1
                                                ? L::load(x + k)
                                                : L::gather(x + k * column, distance));
    }
    if (STRIDE)
        L::store(results, pooled);
    else
        L::scatter(results, w.pooled_window, pooled);
}

/* Computes the results of windows. */
template <typename Operation> struct results {
    template <int STRIDE, typename T> static void compute(const windows<T> &w) {
        enum { N = lanes<T>::N };
        const npy_intp n = w.n_windows;
        for (npy_intp i = 0; i < n;) {
            if (i + N <= n) {
                pool_windows<Operation, STRIDE>(w, i);
                i += N;
            } else if (n >= N && w.is_first) {
                /* Compute the last N windows, some of them again. */
                i = n - N;
            } else {
                pool_window<Operation>(w, i++);
            }
        }
    }
};

/* Operations of gradients. `start` returns the term of a window. `choose` returns the
 * term for element a of the window. */
struct sum_gradient {
    template <typename V, typename T> static V start(V gradient, T divisor) {
        return gradient / divisor;
    }

    template <typename V> static V choose(V, V, V term) {
        return term;
    }
};

struct maximum_gradient {
    template <typename V, typename T> static V start(V gradient, T) {
        return gradient;
    }

    /* A term of 0 does not change a sum: a sum is never -0, because it starts as 0. */
    template <typename V> static V choose(V a, V maximum, V term) {
        return a == maximum ? term : V();
    }
};

/* Add the term of window number i to `sums`. Vectors of one number and zeros avoid
 * branches that the processor cannot predict. */
template <typename Operation, typename T>
static inline void add_window(const windows<T> &w, npy_intp i) {
    typedef typename lanes<T>::vector V;
    const V pooled = {w.pooled[i * w.pooled_window]};
    const V term = {Operation::start(w.terms[i * w.terms_window], w.divisor)};
    for (npy_intp row = 0; row < w.n_rows; row++) {
        T *sums = w.sums + row * w.sums_row + i * w.sums_window;
        const T *x = w.x + row * w.x_row + i * w.x_window;
        for (npy_intp k = 0; k < w.n_columns; k++)
            sums[k] += Operation::choose(V{x[k * w.x_column]}, pooled, term)[0];
    }
}

/* Add the terms of the first n windows to STRIDE adjacent columns, from column k of
 * each window on. Omit the first n_omitted columns. n must be a multiple of N. */
template <typename Operation, int STRIDE, typename T>
static void add_columns(const windows<T> &w, npy_intp n, npy_intp row, npy_intp k,
                        int n_omitted) {
    typedef lanes<T> L;
    T *sums = w.sums + row * w.sums_row + k;
    const T *x = w.x + row * w.x_row + k;
    for (npy_intp i = 0; i < n; i += L::N) {
        const auto pooled = L::load(w.pooled + i),
                   terms = Operation::start(L::load(w.terms + i), w.divisor);
        for (int j = 0; j < STRIDE; j++, sums += L::N, x += L::N) {
            const auto chosen = Operation::choose(
                L::load(x), L::repeat(pooled, STRIDE, j), L::repeat(terms, STRIDE, j));
            const auto is_added = L::count(STRIDE, j) >= n_omitted;
            L::store(sums, L::load(sums) + (is_added ? chosen : typename L::vector()));
        }
    }
}

/* Adds the terms of windows to `sums`. An element of `sums` is in a lower column of a
 * window than of the preceding window. So if the columns are in descending order, the
 * element accumulates the terms of the windows in ascending order. */
template <typename Operation> struct gradients {
    template <int STRIDE, typename T> static void compute(const windows<T> &w) {
        enum { COLUMNS = STRIDE ? STRIDE : 1 };
        npy_intp i = 0;
        if (STRIDE && w.n_columns >= STRIDE) {
            const int n_more = w.n_columns % COLUMNS;
            i = w.n_windows / lanes<T>::N * lanes<T>::N;
            for (npy_intp row = 0; row < w.n_rows; row++) {
                npy_intp k = w.n_columns - COLUMNS;
                if (n_more)
                    add_columns<Operation, COLUMNS>(w, i, row, k, COLUMNS - n_more);
                for (k -= n_more; k >= 0; k -= COLUMNS)
                    add_columns<Operation, COLUMNS>(w, i, row, k, 0);
            }
        }
        for (; i < w.n_windows; i++)
            add_window<Operation>(w, i);
    }
};

} // namespace

#endif
