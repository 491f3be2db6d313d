#ifndef THEANO_CORRELATIONS_H
#define THEANO_CORRELATIONS_H

/* Kernels of libtheano_functions for correlations of images with filters (CorrMM), and
 * for their gradients. */

/* The sizes along the rows or the columns, in elements. Element y of the top is a sum
 * over the elements i of a filter. It reads element y * stride + i * dilation - padding
 * of an image, which is 0 outside the image. */
struct correlation_axis {
    long image, filter, top, stride, dilation, padding;

    /* Return the length of the padded image that all elements of the top read. */
    long read_length() const {
        return (top - 1) * stride + (filter - 1) * dilation + 1;
    }
};

/* A correlation of contiguous arrays:
 * images: n_images x (n_groups * n_channels) x rows.image x columns.image
 * filters: (n_groups * n_filters) x n_channels x rows.filter x columns.filter
 * top: n_images x (n_groups * n_filters) x rows.top x columns.top
 * A filter reads the n_channels channels of its group. */
template <typename T> struct correlation {
    long n_images, n_groups, n_channels, n_filters;
    correlation_axis rows, columns;
    T *images, *filters, *top;
};

/* Compute one array of the correlation from the two others: the top, or the gradient
 * with respect to the filters or the images. All lengths are positive. T is float or
 * double. theano_enable_products must have returned true before. Return 0, or -1 if
 * there is not enough memory. */
template <typename T> int theano_correlate(const correlation<T> &c);
template <typename T> int theano_correlate_for_filters(const correlation<T> &c);
template <typename T> int theano_correlate_for_images(const correlation<T> &c);

#endif
