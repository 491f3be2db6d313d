/* The kernel of theano_products.cpp, which includes this file once per instruction set,
 * in a namespace of its own. VECTOR_BYTES is the size of a vector.
 *
 * C is computed in tiles of up to MAX_ROWS rows and MAX_VECTORS vectors. The sums of a
 * tile stay in registers. A panel is a column of tiles. */

enum { MAX_VECTORS = 3, MAX_ROWS_OF_PART = 64, MAX_K = 192 };

template <typename T> struct simd {
    typedef T vector
        __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
    enum { LANES = VECTOR_BYTES / sizeof(T), COLUMNS = MAX_VECTORS * LANES };
};

/* The elements of A, if its rows and its columns are at constant distances. */
template <typename T> struct matrix_factors {
    const T *a;
    long row_of_a, column_of_a;

    T operator()(int i, long l) const {
        return a[i * row_of_a + l * column_of_a];
    }
    /* Return the factors from row i on. */
    matrix_factors from(long i) const {
        return {a + i * row_of_a, row_of_a, column_of_a};
    }
};

/* Compute a tile of m rows and v vectors at c. factors(i, l) returns an element of A.
 * The last vector ends at column p.n, and overlaps the vector before it if p.n is not a
 * multiple of the lanes. */
template <int m, int v, typename T, typename Factors>
INLINE void compute_tile(const product<T> &p, const Factors &factors, T *c) {
    typedef typename simd<T>::vector vector;
    enum { LANES = simd<T>::LANES };
    const long last = p.n - LANES;
    vector sums[m][v];
#pragma GCC unroll 8
    for (int i = 0; i < m; i++)
#pragma GCC unroll 3
        for (int j = 0; j < v; j++)
            sums[i][j] = vector{};
    for (long l = 0; l < p.k; l++) {
        const T *const b = p.b + l * p.row_of_b;
        vector row[v];
#pragma GCC unroll 3
        for (int j = 0; j < v; j++)
            row[j] = *(const vector *)(b + (j < v - 1 ? j * LANES : last));
#pragma GCC unroll 8
        for (int i = 0; i < m; i++) {
            const T factor = factors(i, l);
#pragma GCC unroll 3
            for (int j = 0; j < v; j++)
                sums[i][j] += factor * row[j];
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < m; i++) {
        /* Load the whole row of C before a store, because the last vectors overlap. */
        vector *to[v], row[v];
#pragma GCC unroll 3
        for (int j = 0; j < v; j++) {
            to[j] = (vector *)(c + i * p.row_of_c + (j < v - 1 ? j * LANES : last));
            row[j] = p.alpha * sums[i][j];
            if (p.beta != 0)
                row[j] += p.beta * *to[j];
        }
#pragma GCC unroll 3
        for (int j = 0; j < v; j++)
            *to[j] = row[j];
    }
}

/* Compute the rows of a panel of v vectors, in tiles of r rows and then of fewer rows.
 */
template <int r, int v, typename T, typename Factors>
INLINE void compute_rows(const product<T> &p, const Factors &factors, long i = 0) {
    for (; p.m - i >= r; i += r)
        compute_tile<r, v>(p, factors.from(i), p.c + i * p.row_of_c);
    if (r > 1)
        compute_rows<(r > 1 ? r / 2 : 1), v>(p, factors, i);
}

/* Compute a panel, whose p.n columns need up to v vectors. */
template <int v, typename T, typename Factors>
static void compute_panel(const product<T> &p, const Factors &factors) {
    if (v > 1 && p.n <= (v - 1) * simd<T>::LANES)
        compute_panel<(v > 1 ? v - 1 : 1)>(p, factors);
    else
        compute_rows<MAX_ROWS, v>(p, factors);
}

/* Transpose 4 x 4 elements. The rows of `to` are simd<T>::COLUMNS elements apart. */
template <typename T> INLINE void transpose(const T *from, long row_of_from, T *to) {
    typedef T row
        __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));
    typedef typename integer<T>::type indices
        __attribute__((vector_size(4 * sizeof(T))));
    const row a = *(const row *)from, b = *(const row *)(from + row_of_from),
              c = *(const row *)(from + 2 * row_of_from),
              d = *(const row *)(from + 3 * row_of_from);
    const indices low = {0, 4, 2, 6}, high = {1, 5, 3, 7}, first = {0, 1, 4, 5},
                  second = {2, 3, 6, 7};
    const row ab_low = __builtin_shuffle(a, b, low),
              ab_high = __builtin_shuffle(a, b, high),
              cd_low = __builtin_shuffle(c, d, low),
              cd_high = __builtin_shuffle(c, d, high);
    enum { COLUMNS = simd<T>::COLUMNS };
    *(row *)to = __builtin_shuffle(ab_low, cd_low, first);
    *(row *)(to + COLUMNS) = __builtin_shuffle(ab_high, cd_high, first);
    *(row *)(to + 2 * COLUMNS) = __builtin_shuffle(ab_low, cd_low, second);
    *(row *)(to + 3 * COLUMNS) = __builtin_shuffle(ab_high, cd_high, second);
}

/* Copy B into rows of simd<T>::COLUMNS elements. */
template <typename T> static void copy_panel(const product<T> &p, T *to) {
    typedef typename simd<T>::vector vector;
    enum { COLUMNS = simd<T>::COLUMNS, LANES = simd<T>::LANES, LINE = 64 / sizeof(T) };
    if (p.column_of_b == 1 && p.n >= LANES) {
        for (long l = 0; l < p.k; l++)
            for (long i = 0; i < p.n; i += LANES) {
                const long j = min(i, p.n - LANES);
                *(vector *)(to + l * COLUMNS + j) =
                    *(const vector *)(p.b + l * p.row_of_b + j);
            }
        return;
    }
    const long whole_k = p.row_of_b == 1 ? p.k & -LINE : 0, whole_n = p.n & -4;
    for (long l = 0; l < whole_k; l += LINE)
        for (long j = 0; j < whole_n; j += 4)
            for (long i = l; i < l + LINE; i += 4)
                transpose(p.b + i + j * p.column_of_b, p.column_of_b,
                          to + i * COLUMNS + j);
    for (long l = 0; l < p.k; l++)
        for (long j = l < whole_k ? whole_n : 0; j < p.n; j++)
            to[l * COLUMNS + j] = p.b[l * p.row_of_b + j * p.column_of_b];
}

/* Return the number of panels of C. */
template <typename T> INLINE long count_panels(const product<T> &p) {
    return (p.n + simd<T>::COLUMNS - 1) / simd<T>::COLUMNS;
}

/* Return the number of a part's first element, if n elements are divided into parts of
 * nearly the same number of vectors. The last part may end with a part of a vector. */
template <typename T> INLINE long find_start(long n, long part, long n_parts) {
    enum { LANES = simd<T>::LANES };
    const long n_vectors = (n + LANES - 1) / LANES;
    return min(n, part * n_vectors / n_parts * LANES);
}

/* Return the number of a panel's first column. The last panel has at least one whole
 * vector. */
template <typename T> INLINE long find_first_column(const product<T> &p, long panel) {
    return find_start<T>(p.n, panel, count_panels(p));
}

/* A part of a product has at most MAX_ROWS_OF_PART rows of a panel. It adds the
 * products in blocks of MAX_K, so that a block of B stays in the first-level cache. */
template <typename T> static void run_part(void *work, long number) {
    enum { COLUMNS = simd<T>::COLUMNS };
    const product<T> &whole = *(const product<T> *)work;
    const long n_panels = count_panels(whole), panel = number % n_panels;
    const long i = number / n_panels * MAX_ROWS_OF_PART;
    const long j = find_first_column(whole, panel);
    product<T> part = whole;
    part.m = min(whole.m - i, MAX_ROWS_OF_PART);
    part.n = find_first_column(whole, panel + 1) - j;
    part.c += i * whole.row_of_c + j;
    /* If rows are a multiple of this distance apart, the first-level cache holds few of
     * them, and several tiles read a copy faster. With vectors of 64 bytes, a copy was
     * slower. */
    enum { CONFLICT_BYTES = 2048 };
    const bool conflicts = VECTOR_BYTES < 64 && part.m > 2 * MAX_ROWS &&
                           whole.row_of_b * sizeof(T) % CONFLICT_BYTES == 0;
    T copy[MAX_K * COLUMNS] __attribute__((aligned(64)));
    for (long l = 0; l < whole.k; l += MAX_K) {
        part.k = min(whole.k - l, MAX_K);
        part.b = whole.b + l * whole.row_of_b + j * whole.column_of_b;
        part.row_of_b = whole.row_of_b;
        if (whole.column_of_b != 1 || conflicts) {
            copy_panel(part, copy);
            part.b = copy;
            part.row_of_b = COLUMNS;
        }
        compute_panel<MAX_VECTORS>(
            part,
            matrix_factors<T>{whole.a + i * whole.row_of_a + l * whole.column_of_a,
                              whole.row_of_a, whole.column_of_a});
        part.beta = 1;
    }
}

/* Compute the product and return 1, in threads if `in_parts` is true. Return 0 if a row
 * of C has less than one vector. */
template <typename T> static int run(const product<T> &p, bool in_parts) {
    if (p.n < simd<T>::LANES)
        return 0;
    const long n_parts =
        count_panels(p) * ((p.m + MAX_ROWS_OF_PART - 1) / MAX_ROWS_OF_PART);
    run_all(run_part<T>, (void *)&p, n_parts, in_parts);
    return 1;
}
