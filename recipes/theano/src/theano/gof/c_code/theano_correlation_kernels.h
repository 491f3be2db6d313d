/* The kernels for correlations. theano_products.cpp includes this file after
 * theano_products_kernel.h, in the same namespaces.
 *
 * The top is a product: its rows are filters, its columns are positions in the top, and
 * its terms are the elements of a filter. The second factor exists only as panels:
 * copies of MAX_K terms for the positions of a panel. */

/* Some channels of n_images images. If elements outside the images are read, a copy
 * with zeros. An element of the first image is at data[channel * channel_size + y *
 * row_size + x]. */
template <typename T> struct padded_images {
    const correlation<T> &c;
    const long n_images, n_channels, n_rows, n_columns;
    const bool are_copied;
    const long row_size, channel_size, image_size;
    /* The copy, or NULL. */
    T *const copy;
    /* The distance of each element that a filter reads from the first element. */
    long *const terms;
    const T *data;
    /* Elements before this address can be read. */
    const T *end;

    padded_images(const correlation<T> &c, long n_images, long n_channels)
        : c(c), n_images(n_images), n_channels(n_channels),
          n_rows(c.rows.read_length()), n_columns(c.columns.read_length()),
          are_copied(c.rows.padding || c.columns.padding || n_rows > c.rows.image ||
                     n_columns > c.columns.image),
          row_size(are_copied ? n_columns : c.columns.image),
          channel_size(row_size * (are_copied ? n_rows : c.rows.image)),
          image_size(channel_size *
                     (are_copied ? n_channels : c.n_groups * c.n_channels)),
          copy(are_copied
                   ? (T *)malloc((n_images * image_size + simd<T>::LANES) * sizeof(T))
                   : NULL),
          terms((long *)malloc(n_channels * c.rows.filter * c.columns.filter *
                               sizeof(long))) {
        long *term = terms;
        for (long i = 0; i < n_channels && terms; i++)
            for (long y = 0; y < c.rows.filter; y++)
                for (long x = 0; x < c.columns.filter; x++)
                    *term++ = i * channel_size + y * c.rows.dilation * row_size +
                              x * c.columns.dilation;
    }

    ~padded_images() {
        free(copy);
        free(terms);
    }

    /* Return whether there is enough memory. */
    bool are_complete() const {
        return terms && (copy || !are_copied);
    }

    /* Set the images to the channels at `from`, which belong to the first image. */
    void set(const T *from) {
        const long size = c.rows.image * c.columns.image,
                   distance = c.n_groups * c.n_channels * size;
        if (!are_copied) {
            data = from;
            end = c.images + c.n_images * distance;
            return;
        }
        /* The columns of the copy from first_column to end_column are in the image. */
        const long padding = c.columns.padding, first_column = min(padding, n_columns),
                   end_column = min(padding + c.columns.image, n_columns);
        T *to = copy;
        for (long i = 0; i < n_images * n_channels; i++)
            for (long y = -c.rows.padding; y < n_rows - c.rows.padding; y++) {
                const T *const row = from + i / n_channels * distance +
                                     i % n_channels * size + y * c.columns.image;
                if (y < 0 || y >= c.rows.image) {
                    memset(to, 0, n_columns * sizeof(T));
                } else {
                    memset(to, 0, first_column * sizeof(T));
                    memcpy(to + first_column, row,
                           (end_column - first_column) * sizeof(T));
                    memset(to + end_column, 0, (n_columns - end_column) * sizeof(T));
                }
                to += n_columns;
            }
        memset(to, 0, simd<T>::LANES * sizeof(T));
        data = copy;
        end = to + simd<T>::LANES;
    }

    /* Return the distance of the element that the first element of a filter reads at
     * row y and column x of the top, from the first element. */
    long find_position(long y, long x) const {
        return y * c.rows.stride * row_size + x * c.columns.stride;
    }
};

/* Positions of a panel that are in the same row of the top: n elements from distance
 * `from` of an image, to element `to` of a row of the panel. */
struct segment {
    long from, to, n;
};

/* Copy the segments of n_terms terms into the rows of a panel. Write up to a vector
 * more than a segment. */
template <typename T>
static void copy_segments(const padded_images<T> &images, const long *terms,
                          long n_terms, const segment *segments, int n_segments,
                          T *panel) {
    typedef typename simd<T>::vector vector;
    enum { LANES = simd<T>::LANES, COLUMNS = simd<T>::COLUMNS };
    const long stride = images.c.columns.stride;
    const segment &last = segments[n_segments - 1];
    for (long l = 0; l < n_terms; l++, panel += COLUMNS) {
        const T *const from = images.data + terms[l];
        const bool in_vectors =
            stride == 1 && from + last.from + last.n + LANES <= images.end;
        for (int s = 0; s < n_segments; s++)
            if (in_vectors)
                for (long i = 0; i < segments[s].n; i += LANES)
                    *(vector *)(panel + segments[s].to + i) =
                        *(const vector *)(from + segments[s].from + i);
            else
                for (long i = 0; i < segments[s].n; i++)
                    panel[segments[s].to + i] = from[segments[s].from + i * stride];
    }
}

/* The work of theano_correlate. A part computes the top of images_at_once images and of
 * a group; n_splits parts divide the panels. */
template <typename T> struct correlation_parts {
    const correlation<T> &c;
    long images_at_once, n_splits;
    bool failed;
};

template <typename T> static void run_correlation_part(void *work, long number) {
    enum { LANES = simd<T>::LANES, COLUMNS = simd<T>::COLUMNS };
    correlation_parts<T> &parts = *(correlation_parts<T> *)work;
    const correlation<T> &c = parts.c;
    const long split = number % parts.n_splits,
               group = number / parts.n_splits % c.n_groups,
               first_image =
                   number / parts.n_splits / c.n_groups * parts.images_at_once,
               n_images = min(c.n_images - first_image, parts.images_at_once);
    const long n_terms = c.n_channels * c.rows.filter * c.columns.filter,
               top_size = c.rows.top * c.columns.top, width = c.columns.top,
               n_positions = n_images * top_size,
               image_and_group = first_image * c.n_groups + group;
    /* The rows of the product have at least a vector. */
    const long row = max(n_positions, LANES);
    T panel[MAX_K * COLUMNS + LANES] __attribute__((aligned(64)));
    segment segments[COLUMNS];
    padded_images<T> images(c, n_images, c.n_channels);
    T *const top = c.top + image_and_group * c.n_filters * top_size;
    T *const rows = row == top_size ? top : (T *)malloc(c.n_filters * row * sizeof(T));
    if (!rows || !images.are_complete()) {
        parts.failed = true;
        if (rows != top)
            free(rows);
        return;
    }
    images.set(c.images +
               image_and_group * c.n_channels * c.rows.image * c.columns.image);
    const T *const filters = c.filters + group * c.n_filters * n_terms;
    product<T> p = {};
    p.m = c.n_filters;
    p.n = row;
    p.alpha = 1;
    p.b = panel;
    p.row_of_b = COLUMNS;
    p.row_of_c = row;
    const long n_panels = count_panels(p);
    if (row != n_positions)
        memset(panel, 0, sizeof(panel));
    for (long i = split * n_panels / parts.n_splits;
         i < (split + 1) * n_panels / parts.n_splits; i++) {
        const long start = find_start<T>(row, i, n_panels),
                   end = find_start<T>(row, i + 1, n_panels);
        int n_segments = 0;
        for (long at = start, n; at < min(end, n_positions); at += n, n_segments++) {
            n = min(min(end, n_positions) - at, width - at % width);
            segments[n_segments] = {
                at / top_size * images.image_size +
                    images.find_position(at % top_size / width, at % width),
                at - start, n};
        }
        p.n = end - start;
        p.c = rows + start;
        p.beta = 0;
        for (long term = 0; term < n_terms; term += MAX_K) {
            p.k = min(n_terms - term, MAX_K);
            copy_segments(images, images.terms + term, p.k, segments, n_segments,
                          panel);
            compute_panel<MAX_VECTORS>(p,
                                       matrix_factors<T>{filters + term, n_terms, 1});
            p.beta = 1;
        }
    }
    if (rows != top) {
        for (long i = 0; i < n_images; i++)
            for (long j = 0; j < c.n_filters; j++)
                memcpy(top + (i * c.n_groups * c.n_filters + j) * top_size,
                       rows + j * row + i * top_size, top_size * sizeof(T));
        free(rows);
    }
}

/* Compute the top. If an image has few positions, a panel has the positions of several
 * images. If there are few images, divide their panels. */
template <typename T> static int correlate(const correlation<T> &c) {
    enum { MIN_PARTS = 8, COLUMNS = simd<T>::COLUMNS };
    const long top_size = c.rows.top * c.columns.top,
               images_at_once = max(1, min(c.n_images, COLUMNS / top_size)),
               n_parts =
                   (c.n_images + images_at_once - 1) / images_at_once * c.n_groups,
               n_panels = (top_size + COLUMNS - 1) / COLUMNS;
    correlation_parts<T> parts = {c, images_at_once,
                                  max(1, min(n_panels, MIN_PARTS / n_parts)), false};
    run_all(run_correlation_part<T>, &parts, n_parts * parts.n_splits);
    return -parts.failed;
}

/* The elements of an image as factors: rows are terms, and columns are positions. */
template <typename T> struct image_factors {
    const T *data;
    const long *terms, *positions;

    T operator()(int i, long l) const {
        return (data + terms[i])[positions[l]];
    }
    image_factors from(long i) const {
        return {data, terms + i, positions};
    }
};

/* The work of theano_correlate_for_filters. A part computes, for the images of a chunk,
 * the terms of some channels. It adds them to `sums`, which has a row of `row` elements
 * for each group, chunk and term; elements of a row are filters. */
template <typename T> struct filter_parts {
    const correlation<T> &c;
    long n_chunks, n_channel_parts, n_terms, row;
    T *sums;
    bool failed;
};

template <typename T> static void run_filter_part(void *work, long number) {
    enum { LANES = simd<T>::LANES, COLUMNS = simd<T>::COLUMNS };
    filter_parts<T> &parts = *(filter_parts<T> *)work;
    const correlation<T> &c = parts.c;
    const long channel_part = number % parts.n_channel_parts,
               chunk_and_group = number / parts.n_channel_parts,
               chunk = chunk_and_group % parts.n_chunks,
               group = chunk_and_group / parts.n_chunks;
    const long channel = channel_part * c.n_channels / parts.n_channel_parts,
               end = (channel_part + 1) * c.n_channels / parts.n_channel_parts;
    const long filter_size = c.rows.filter * c.columns.filter,
               n_positions = c.rows.top * c.columns.top,
               image_size = c.rows.image * c.columns.image,
               first_image = chunk * c.n_images / parts.n_chunks;
    T panel[MAX_K * COLUMNS] __attribute__((aligned(64)));
    padded_images<T> image(c, 1, end - channel);
    long *const positions = (long *)malloc(n_positions * sizeof(long));
    if (!positions || !image.are_complete()) {
        parts.failed = true;
        free(positions);
        return;
    }
    for (long y = 0, i = 0; y < c.rows.top; y++)
        for (long x = 0; x < c.columns.top; x++)
            positions[i++] = image.find_position(y, x);
    if (parts.row != c.n_filters)
        memset(panel, 0, sizeof(panel));
    product<T> p = {}, filters = {};
    p.m = (end - channel) * filter_size;
    p.n = parts.row;
    p.alpha = 1;
    p.b = panel;
    p.row_of_b = COLUMNS;
    p.row_of_c = parts.row;
    filters.row_of_b = 1;
    filters.column_of_b = n_positions;
    T *const sums =
        parts.sums +
        (chunk_and_group * parts.n_terms + channel * filter_size) * parts.row;
    const long n_panels = count_panels(p);
    for (long i = first_image; i < (chunk + 1) * c.n_images / parts.n_chunks; i++) {
        const long image_and_group = i * c.n_groups + group;
        image.set(c.images + (image_and_group * c.n_channels + channel) * image_size);
        const T *const top = c.top + image_and_group * c.n_filters * n_positions;
        for (long position = 0; position < n_positions; position += MAX_K) {
            p.k = filters.k = min(n_positions - position, MAX_K);
            p.beta = i > first_image || position;
            for (long j = 0; j < n_panels; j++) {
                const long start = find_start<T>(parts.row, j, n_panels);
                p.n = find_start<T>(parts.row, j + 1, n_panels) - start;
                p.c = sums + start;
                filters.n = min(p.n, c.n_filters - start);
                filters.b = top + start * n_positions + position;
                copy_panel(filters, panel);
                compute_panel<MAX_VECTORS>(
                    p, image_factors<T>{image.data, image.terms, positions + position});
            }
        }
    }
    free(positions);
}

/* Add the sums of the chunks, and store them as LANES filters. */
template <typename T> static void add_chunks(void *work, long number) {
    typedef typename simd<T>::vector vector;
    enum { LANES = simd<T>::LANES };
    const filter_parts<T> &parts = *(const filter_parts<T> *)work;
    const correlation<T> &c = parts.c;
    const long n_parts = (c.n_filters + LANES - 1) / LANES, group = number / n_parts;
    const long end = min((number % n_parts + 1) * LANES, parts.row),
               first = end - LANES, chunk_size = parts.n_terms * parts.row;
    T *const filters = c.filters + (group * c.n_filters + first) * parts.n_terms;
    for (long term = 0; term < parts.n_terms; term++) {
        const T *const sums =
            parts.sums + group * parts.n_chunks * chunk_size + term * parts.row + first;
        vector sum = *(const vector *)sums;
        for (long chunk = 1; chunk < parts.n_chunks; chunk++)
            sum += *(const vector *)(sums + chunk * chunk_size);
        for (long i = number % n_parts * LANES - first;
             i < min(LANES, c.n_filters - first); i++)
            filters[i * parts.n_terms + term] = sum[i];
    }
}

/* Compute the gradient with respect to the filters. Divide the channels, and divide the
 * images if there are few channels. */
template <typename T> static int correlate_for_filters(const correlation<T> &c) {
    enum { MIN_TERMS = 64, MIN_PARTS = 8, LANES = simd<T>::LANES };
    const long n_terms = c.n_channels * c.rows.filter * c.columns.filter,
               n_channel_parts =
                   max(1, min(c.n_channels, min(16, n_terms / MIN_TERMS))),
               n_chunks = max(1, min(c.n_images, MIN_PARTS / n_channel_parts)),
               row = max(c.n_filters, LANES);
    filter_parts<T> parts = {c, n_chunks, n_channel_parts, n_terms, row, NULL, false};
    parts.sums = (T *)malloc(c.n_groups * n_chunks * n_terms * row * sizeof(T));
    if (!parts.sums)
        return -1;
    run_all(run_filter_part<T>, &parts, c.n_groups * n_chunks * n_channel_parts);
    if (!parts.failed)
        run_all(add_chunks<T>, &parts,
                c.n_groups * ((c.n_filters + LANES - 1) / LANES));
    free(parts.sums);
    return -parts.failed;
}

/* The work of theano_correlate_for_images. A part computes images_at_once images of a
 * group; n_splits parts divide the channels. */
template <typename T> struct image_parts {
    const correlation<T> &c;
    long images_at_once, n_splits;
    bool failed;
};

/* Add the n elements at `from` to the elements at `to`. */
template <typename T> INLINE void add_elements(T *to, const T *from, long n) {
    typedef typename simd<T>::vector vector;
    enum { LANES = simd<T>::LANES };
    long i = 0;
    for (; i + LANES <= n; i += LANES)
        *(vector *)(to + i) += *(const vector *)(from + i);
    for (; i < n; i++)
        to[i] += from[i];
}

/* Add the products of some rows of the top and of the filters of a channel, with a row
 * of `row` products for each element of a filter, to the channel of the image. */
template <typename T>
static void add_products(const correlation<T> &c, const T *products, long row,
                         long first_row, long n_rows, T *image) {
    const correlation_axis &columns = c.columns;
    const long stride = columns.stride;
    for (long i = 0; i < c.rows.filter; i++)
        for (long j = 0; j < columns.filter; j++, products += row) {
            /* The columns of the top from first_column to end_column are added to
             * columns of the image. */
            const long shift = j * columns.dilation - columns.padding,
                       first_column = shift < 0 ? (stride - 1 - shift) / stride : 0,
                       end_column = min(columns.top,
                                        (columns.image - shift + stride - 1) / stride);
            for (long k = 0; k < n_rows; k++) {
                const long y = (first_row + k) * c.rows.stride + i * c.rows.dilation -
                               c.rows.padding;
                if (y < 0 || y >= c.rows.image)
                    continue;
                const T *const from = products + k * columns.top;
                T *const to = image + y * columns.image + shift;
                if (stride == 1)
                    add_elements(to + first_column, from + first_column,
                                 end_column - first_column);
                else
                    for (long x = first_column; x < end_column; x++)
                        to[x * stride] += from[x];
            }
        }
}

template <typename T> static void run_image_part(void *work, long number) {
    enum { LANES = simd<T>::LANES, ELEMENTS = 1 << 14, MIN_ROWS_OF_PRODUCT = 16 };
    image_parts<T> &parts = *(image_parts<T> *)work;
    const correlation<T> &c = parts.c;
    const long split = number % parts.n_splits,
               group = number / parts.n_splits % c.n_groups,
               first_image =
                   number / parts.n_splits / c.n_groups * parts.images_at_once,
               n_images = min(c.n_images - first_image, parts.images_at_once),
               image_and_group = first_image * c.n_groups + group;
    const long first_channel = split * c.n_channels / parts.n_splits,
               last_channel = (split + 1) * c.n_channels / parts.n_splits;
    const long filter_size = c.rows.filter * c.columns.filter,
               image_size = c.rows.image * c.columns.image,
               top_size = c.rows.top * c.columns.top, width = c.columns.top;
    /* If the top of an image is short, a copy has the tops of all images in a row. */
    const bool is_copied = n_images > 1 || top_size < LANES;
    /* The products of n_channels channels and of a block of rows of the top fit into
     * the second-level cache. Rows of products have at least a vector. */
    const long min_channels = (MIN_ROWS_OF_PRODUCT + filter_size - 1) / filter_size,
               rows_of_block = max(
                   (LANES + width - 1) / width,
                   min(c.rows.top, ELEMENTS / (min_channels * filter_size * width))),
               n_blocks = is_copied ? 1 : max(1, c.rows.top / rows_of_block),
               max_row = max(LANES,
                             (c.rows.top + n_blocks - 1) / n_blocks * width * n_images),
               n_channels = min(c.n_channels,
                                max(min_channels, ELEMENTS / (filter_size * max_row)));
    const long top_distance = c.n_groups * c.n_filters * top_size,
               image_distance = c.n_groups * c.n_channels * image_size;
    const T *top = c.top + image_and_group * c.n_filters * top_size;
    T *const images = c.images + image_and_group * c.n_channels * image_size;
    T *const products = (T *)malloc(n_channels * filter_size * max_row * sizeof(T));
    T *const copy = is_copied ? (T *)calloc(c.n_filters * max_row, sizeof(T)) : NULL;
    if (!products || (is_copied && !copy)) {
        parts.failed = true;
        free(products);
        free(copy);
        return;
    }
    product<T> p = {};
    p.k = c.n_filters;
    p.alpha = 1;
    p.row_of_a = 1;
    p.column_of_a = c.n_channels * filter_size;
    p.row_of_b = is_copied ? max_row : top_size;
    p.column_of_b = 1;
    p.c = products;
    for (long i = 0; i < n_images; i++) {
        memset(images + i * image_distance + first_channel * image_size, 0,
               (last_channel - first_channel) * image_size * sizeof(T));
        for (long j = 0; j < c.n_filters && is_copied; j++)
            memcpy(copy + j * max_row + i * top_size,
                   top + i * top_distance + j * top_size, top_size * sizeof(T));
    }
    for (long block = 0; block < n_blocks; block++) {
        const long row = block * c.rows.top / n_blocks,
                   n_rows = (block + 1) * c.rows.top / n_blocks - row;
        p.n = p.row_of_c = is_copied ? max_row : n_rows * width;
        p.b = is_copied ? copy : top + row * width;
        for (long channel = first_channel; channel < last_channel;
             channel += n_channels) {
            const long end = min(channel + n_channels, last_channel);
            p.m = (end - channel) * filter_size;
            p.a = c.filters +
                  (group * c.n_filters * c.n_channels + channel) * filter_size;
            run(p, false);
            for (long i = 0; i < n_images; i++)
                for (long j = channel; j < end; j++)
                    add_products(c,
                                 products + (j - channel) * filter_size * p.row_of_c +
                                     i * top_size,
                                 p.row_of_c, row, n_rows,
                                 images + i * image_distance + j * image_size);
        }
    }
    free(products);
    free(copy);
}

/* Compute the gradient with respect to the images. If the top of an image is short,
 * compute several images at once. If there are few images, divide the channels. */
template <typename T> static int correlate_for_images(const correlation<T> &c) {
    enum { MIN_PARTS = 8, COLUMNS = simd<T>::COLUMNS };
    const long images_at_once =
                   max(1, min(c.n_images, COLUMNS / (c.rows.top * c.columns.top))),
               n_parts =
                   (c.n_images + images_at_once - 1) / images_at_once * c.n_groups;
    image_parts<T> parts = {c, images_at_once,
                            max(1, min(c.n_channels, MIN_PARTS / n_parts)), false};
    run_all(run_image_part<T>, &parts, n_parts * parts.n_splits);
    return -parts.failed;
}
