/* The kernels for products of a matrix and a vector, and of two vectors.
 * theano_products.cpp includes this file after theano_products_kernel.h, in the same
 * namespaces. */

/* The most vectors of y, and of a row of an outer product, that stay in registers. */
enum { MAX_VECTORS_OF_Y = 8, MAX_VECTORS_OF_ROW = 6 };

/* Compute n elements of y from number i on, as sums of columns of A. The elements need
 * v vectors; the last vector overlaps the vector before it if n is not a multiple of
 * the lanes. To hide the latency of an addition, up to 8 columns are added to separate
 * sums. */
template <int v, typename T> static void add_columns(const gemv<T> &p, long i, long n) {
    typedef typename simd<T>::vector vector;
    enum { LANES = simd<T>::LANES, COLUMNS_AT_ONCE = (8 + v - 1) / v };
    if (v > 1 && n <= (v - 1) * LANES)
        return add_columns<(v > 1 ? v - 1 : 1)>(p, i, n);
    vector sums[v][COLUMNS_AT_ONCE], results[v];
    long offsets[v], j = 0;
#pragma GCC unroll 8
    for (int k = 0; k < v; k++) {
        offsets[k] = i + (k < v - 1 ? k * LANES : n - LANES);
#pragma GCC unroll 8
        for (int c = 0; c < COLUMNS_AT_ONCE; c++)
            sums[k][c] = vector{};
    }
    for (; j + COLUMNS_AT_ONCE <= p.n_columns; j += COLUMNS_AT_ONCE)
#pragma GCC unroll 8
        for (int c = 0; c < COLUMNS_AT_ONCE; c++) {
            const T *const column = p.a + (j + c) * p.column_of_a;
            const T factor = p.x[(j + c) * p.step_of_x];
#pragma GCC unroll 8
            for (int k = 0; k < v; k++)
                sums[k][c] += factor * *(const vector *)(column + offsets[k]);
        }
    for (; j < p.n_columns; j++) {
        const T *const column = p.a + j * p.column_of_a, factor = p.x[j * p.step_of_x];
#pragma GCC unroll 8
        for (int k = 0; k < v; k++)
            sums[k][0] += factor * *(const vector *)(column + offsets[k]);
    }
    /* Load all old elements before a store, because y may be `from`. */
#pragma GCC unroll 8
    for (int k = 0; k < v; k++) {
#pragma GCC unroll 8
        for (int c = 1; c < COLUMNS_AT_ONCE; c++)
            sums[k][0] += sums[k][c];
        results[k] = *p.alpha * sums[k][0];
        if (*p.beta != 0)
            results[k] += *p.beta * *(const vector *)(p.from + offsets[k]);
    }
#pragma GCC unroll 8
    for (int k = 0; k < v; k++)
        *(vector *)(p.y + offsets[k]) = results[k];
}

/* Return a vector whose lane i is the sum of the lanes of vectors[i]. Each step adds
 * neighboring groups of `group` lanes. */
template <int group, typename T>
INLINE typename simd<T>::vector add_lanes(typename simd<T>::vector *vectors) {
    typedef typename integer<T>::type indices
        __attribute__((vector_size(VECTOR_BYTES)));
    enum { LANES = simd<T>::LANES };
    if (group == LANES)
        return vectors[0];
    indices first, second;
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) {
        first[i] = i / group % 2 * LANES + i / (2 * group) * 2 * group + i % group;
        second[i] = first[i] + group;
    }
#pragma GCC unroll 8
    for (int i = 0; i < LANES / group / 2; i++)
        vectors[i] = __builtin_shuffle(vectors[2 * i], vectors[2 * i + 1], first) +
                     __builtin_shuffle(vectors[2 * i], vectors[2 * i + 1], second);
    return add_lanes<(group < LANES ? 2 * group : group), T>(vectors);
}

/* Compute the elements of y from number i on, at most one per lane, as products of rows
 * of A and x. Rows after the last row are replaced by the last row. At most 8 rows are
 * read at the same time: the first-level cache keeps their lines even if the rows are a
 * multiple of 4 kB apart. */
template <typename T> static void multiply_rows(const gemv<T> &p, long i) {
    typedef typename simd<T>::vector vector;
    typedef typename integer<T>::type bits
        __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
    enum { LANES = simd<T>::LANES, ROWS = LANES < 8 ? LANES : 8 };
    vector sums[LANES];
    const T *row = p.a + i * p.row_of_a;
    const long last = p.n_columns - LANES;
#pragma GCC unroll 2
    for (int first = 0; first < LANES; first += ROWS) {
        const T *rows[ROWS];
        vector *const sums_of_rows = sums + first;
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; r++) {
            rows[r] = row;
            row += i + first + r + 1 < p.n_rows ? p.row_of_a : 0;
            sums_of_rows[r] = vector{};
        }
        long j = 0;
        for (; j <= last; j += LANES) {
            const vector x = *(const vector *)(p.x + j);
#pragma GCC unroll 8
            for (int r = 0; r < ROWS; r++)
                sums_of_rows[r] += *(const vector *)(rows[r] + j) * x;
        }
        if (j == p.n_columns)
            continue;
        /* Load the last whole vectors, and set the lanes to 0 that have been added. */
        static const bits masks[] = {bits{}, ~bits{}};
        const bits mask = *(const bits *)((const T *)masks + p.n_columns - j);
        const bits x = *(const bits *)(p.x + last) & mask;
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; r++)
            sums_of_rows[r] +=
                (vector)(*(const bits *)(rows[r] + last) & mask) * (vector)x;
    }
    const vector products = *p.alpha * add_lanes<1, T>(sums);
    if (i + LANES <= p.n_rows) {
        vector *const y = (vector *)(p.y + i);
        *y = *p.beta == 0 ? products
                          : products + *p.beta * *(const vector *)(p.from + i);
        return;
    }
    for (int k = 0; i + k < p.n_rows; k++)
        p.y[i + k] = *p.beta == 0 ? products[k] : products[k] + *p.beta * p.from[i + k];
}

/* A product whose result is divided into parts. */
template <typename T> struct gemv_parts {
    const gemv<T> &product;
    long n_parts;
};

/* Compute part number `number` of y. */
template <bool by_columns, typename T>
static void run_gemv_part(void *work, long number) {
    enum { LANES = simd<T>::LANES, BLOCK = MAX_VECTORS_OF_Y * LANES };
    const gemv_parts<T> &parts = *(const gemv_parts<T> *)work;
    const gemv<T> &p = parts.product;
    const long start = find_start<T>(p.n_rows, number, parts.n_parts),
               size = find_start<T>(p.n_rows, number + 1, parts.n_parts) - start;
    if (!by_columns)
        for (long i = 0; i < size; i += LANES)
            multiply_rows(p, start + i);
    const long n_blocks = by_columns ? (size + BLOCK - 1) / BLOCK : 0;
    for (long block = 0; block < n_blocks; block++) {
        const long i = find_start<T>(size, block, n_blocks);
        add_columns<MAX_VECTORS_OF_Y>(p, start + i,
                                      find_start<T>(size, block + 1, n_blocks) - i);
    }
}

/* Compute the product in one part, or in threads if A has at least MIN_ELEMENTS. The
 * number of parts does not depend on the number of threads, because the sums of
 * add_columns depend on the sizes of blocks. For a small A, there are two parts, so
 * that two threads compute the same parts in each call, and find them in their caches.
 */
template <bool by_columns, typename T> static bool run_gemv(const gemv<T> &p) {
    enum { MIN_ELEMENTS = 1 << 15, ELEMENTS_OF_PART = 1 << 16 };
    const long n_elements = p.n_rows * p.n_columns;
    /* Each part has at least two vectors. */
    const long max_parts =
        n_elements < MIN_ELEMENTS ? 1 : p.n_rows / simd<T>::LANES / 2;
    const gemv_parts<T> parts = {
        p, max(1, min(max_parts, max(2, n_elements / ELEMENTS_OF_PART)))};
    run_all(run_gemv_part<by_columns, T>, (void *)&parts, parts.n_parts);
    return true;
}

/* Compute the product and return true, or return false if A, x or y have strides for
 * which there is no kernel, or too few elements. */
template <typename T> static bool compute_gemv(const gemv<T> &p) {
    enum { LANES = simd<T>::LANES };
    if (p.step_of_y != 1)
        return false;
    if (p.row_of_a == 1 && p.n_rows >= LANES && p.n_columns)
        return run_gemv<true>(p);
    return p.column_of_a == 1 && p.step_of_x == 1 && p.n_columns >= LANES &&
           run_gemv<false>(p);
}

/* Compute any product. */
template <typename T> static void multiply(const gemv<T> &p) {
    if (compute_gemv(p))
        return;
    for (long i = 0; i < p.n_rows; i++) {
        /* Four separate sums hide the latency of an addition. */
        T sums[4] = {};
        const T *a = p.a + i * p.row_of_a, *x = p.x;
        const auto add = [&](T *sum) {
            *sum += *a * *x;
            a += p.column_of_a;
            x += p.step_of_x;
        };
        long j = 0;
        for (; j + 4 <= p.n_columns; j += 4)
#pragma GCC unroll 4
            for (T &sum : sums)
                add(&sum);
        for (; j < p.n_columns; j++)
            add(sums);
        T sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        sum *= *p.alpha;
        if (*p.beta != 0)
            sum += *p.beta * p.from[i * p.step_of_from];
        p.y[i * p.step_of_y] = sum;
    }
}

/* Call compute_row(a, z, factor) for each row of A and of the result. An element of the
 * row is A + factor y; alpha is a part of the factor. If `is_transposed`, x is the
 * ger's y, and y its x. Elements in all layouts must equal A + (alpha x) y, so
 * compute_row then multiplies y by alpha. */
template <bool is_transposed, typename T, typename Row>
INLINE void for_each_row(const ger<T> &p, const Row &compute_row) {
    const long n_rows = p.n_rows, row_of_a = p.row_of_a, row_of_z = p.row_of_z,
               step_of_x = p.step_of_x;
    const T alpha = *p.alpha, *a = p.a, *x = p.x;
    T *z = p.z;
    for (long i = 0; i < n_rows; i++, a += row_of_a, z += row_of_z, x += step_of_x)
        compute_row(a, z, is_transposed ? *x : alpha * *x);
}

/* Compute a product of two vectors whose result has rows of at most v vectors. The last
 * vector overlaps the vector before it if a row is not a multiple of the lanes. */
template <int v, bool is_transposed, typename T>
static void compute_short_rows(const ger<T> &p) {
    typedef typename simd<T>::vector vector;
    enum { LANES = simd<T>::LANES };
    if (v > 1 && p.n_columns <= (v - 1) * LANES)
        return compute_short_rows<(v > 1 ? v - 1 : 1), is_transposed>(p);
    vector factors[v];
    long offsets[v];
#pragma GCC unroll 8
    for (int k = 0; k < v; k++) {
        offsets[k] = k < v - 1 ? k * LANES : p.n_columns - LANES;
        factors[k] = *(const vector *)(p.y + offsets[k]);
        if (is_transposed)
            factors[k] *= *p.alpha;
    }
    for_each_row<is_transposed>(
        p, [&](const T *a, T *z, T factor) __attribute__((always_inline)) {
            vector results[v];
        /* Load all elements before a store, because z may be `a`. */
#pragma GCC unroll 8
            for (int k = 0; k < v; k++)
                results[k] = *(const vector *)(a + offsets[k]) + factor * factors[k];
#pragma GCC unroll 8
            for (int k = 0; k < v; k++)
                *(vector *)(z + offsets[k]) = results[k];
        });
}

/* Compute the product of two vectors and return true, or return false if the rows of
 * the matrices are not contiguous. */
template <bool is_transposed, typename T> static bool compute_ger(const ger<T> &p) {
    typedef typename simd<T>::vector vector;
    enum { LANES = simd<T>::LANES };
    if (p.column_of_a != 1 || p.column_of_z != 1 || p.step_of_y != 1 ||
        p.n_columns < LANES)
        return false;
    if (p.n_columns <= MAX_VECTORS_OF_ROW * LANES) {
        compute_short_rows<MAX_VECTORS_OF_ROW, is_transposed>(p);
        return true;
    }
    const long last = p.n_columns - LANES;
    const T alpha = *p.alpha, *const y = p.y;
    for_each_row<is_transposed>(
        p, [=](const T *a, T *z, T factor) __attribute__((always_inline)) {
            const auto at = [=](long j) __attribute__((always_inline)) {
                const vector factors = *(const vector *)(y + j);
                return *(const vector *)(a + j) +
                       factor * (is_transposed ? alpha * factors : factors);
            };
            /* Load the last elements before a store, because z may be `a`. */
            const vector end = at(last);
            for (long j = 0; j < last; j += LANES)
                *(vector *)(z + j) = at(j);
            *(vector *)(z + last) = end;
        });
    return true;
}

/* Compute a product of two vectors without SIMD. */
template <bool is_transposed, typename T> static void compute_scalars(const ger<T> &p) {
    const long n_columns = p.n_columns, column_of_a = p.column_of_a,
               column_of_z = p.column_of_z, step_of_y = p.step_of_y;
    const T alpha = *p.alpha, *const y = p.y;
    for_each_row<is_transposed>(
        p, [=](const T *a, T *z, T factor) __attribute__((always_inline)) {
            for (long j = 0; j < n_columns; j++) {
                const T of_y = y[j * step_of_y];
                z[j * column_of_z] =
                    a[j * column_of_a] + factor * (is_transposed ? alpha * of_y : of_y);
            }
        });
}

/* Compute any product of two vectors. */
template <typename T> static void multiply(const ger<T> &p) {
    const ger<T> transposed = {p.n_columns,   p.n_rows,   p.alpha,     p.y,
                               p.step_of_y,   p.x,        p.step_of_x, p.a,
                               p.column_of_a, p.row_of_a, p.z,         p.column_of_z,
                               p.row_of_z};
    if (compute_ger<false>(p) || compute_ger<true>(transposed))
        return;
    /* Make the longer loop the inner loop. */
    if (p.n_columns >= p.n_rows)
        compute_scalars<false>(p);
    else
        compute_scalars<true>(transposed);
}
