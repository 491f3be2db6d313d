"""
C code of loops over elements, written once, which g++ vectorises.

The loops are functions of C type theano_loops, see theano_loops.h.

"""
from __future__ import absolute_import, print_function, division

from six.moves import xrange


def type_num(dtype):
    """
    Return NumPy's name of the number of a C type.

    """
    return dtype.upper().replace('THEANO_COMPLEX', 'NPY_COMPLEX')


def make_loops(names, dtypes, broadcast, task, vectorised=True):
    """
    Produce the body of a function of C type theano_loops.

    Parameters
    ----------
    names : list of str
        The arrays.
    dtypes : list of str
        The C type of the elements of each.
    broadcast : list of tuples of bool
        Along which dimensions each is broadcast.
    task : str
        Computes an element, "<name>_i" of each array.
    vectorised : bool
        Whether no element depends on another, nor on an error.

    """
    n, nd = len(names), len(broadcast[0])
    rows, next_to, known, strided = "", [], "", ""
    for i, (name, dtype) in enumerate(zip(names, dtypes)):
        if not nd:
            known += "%(dtype)s &%(name)s_i = *(%(dtype)s *)data[%(i)i];\n" % locals()
            continue
        rows += "%(dtype)s *%(name)s_row = (%(dtype)s *)(data[%(i)i] + row * strides[%(i)i]);\n" % locals()
        step = 0 if broadcast[i][-1] else 1
        next_to.append("strides[%i] == %i * (npy_intp)sizeof(%s)" % (
            n + i, step, dtype))
        known += "%(dtype)s &%(name)s_i = %(name)s_row[%(step)i * i];\n" % locals()
        strided += ("%(dtype)s &%(name)s_i = *(%(dtype)s *)((char *)%(name)s_row"
                    " + i * strides[%(n)i + %(i)i]);\n" % locals())
    if not nd:
        return known + task + "return 0;\n"
    constants = ""
    loop = """
                for (npy_intp i = 0; i < sizes[1]; i++) {
                    %(strided)s
                    %(task)s
                }
    """ % locals()
    if vectorised:
        # g++ vectorises a loop with strides that it knows: through rows of
        # arrays in C order, or slices of them, and what is broadcast along.
        constants = "const bool next_to = %s;" % " && ".join(next_to)
        loop = """
                if (next_to) {
                    #pragma omp simd
                    for (npy_intp i = 0; i < sizes[1]; i++) {
                        %(known)s
                        %(task)s
                    }
                } else {%(loop)s}
        """ % locals()
    return """
            %(constants)s
            for (npy_intp row = 0; row < sizes[0]; row++) {
                %(rows)s
                %(loop)s
            }
            return 0;
    """ % locals()


def make_reduction(dtype, acc_dtype, task):
    """
    Produce the body of a function of C type theano_loops that accumulates.

    Parameters
    ----------
    dtype, acc_dtype : str
        The C types of the elements of the array, and of what is accumulated.
    task : str
        Adds an element, "x_i", to what is accumulated, "acc_i".

    """
    strided = """
                for (npy_intp i = 0; i < sizes[1]; i++) {
                    %(dtype)s &x_i = *(%(dtype)s *)(x + i * strides[2]);
                    %(acc)s
                    %(task)s
                }
    """
    along = strided % dict(dtype=dtype, task=task, acc="")
    across = strided % dict(
        dtype=dtype, task=task,
        acc="%s &acc_i = *(%s *)(acc + i * strides[3]);" % (acc_dtype, acc_dtype))
    return """
            const bool next_to = strides[2] == (npy_intp)sizeof(%(dtype)s) &&
                                 strides[3] == (npy_intp)sizeof(%(acc_dtype)s);
            for (npy_intp row = 0; row < sizes[0]; row++) {
                char *x = data[0] + row * strides[0];
                char *acc = data[1] + row * strides[1];
                if (strides[3] == 0) {
                    %(acc_dtype)s acc_i = *(%(acc_dtype)s *)acc;
                    %(along)s
                    *(%(acc_dtype)s *)acc = acc_i;
                } else if (next_to) {
                    #pragma omp simd
                    for (npy_intp i = 0; i < sizes[1]; i++) {
                        %(dtype)s &x_i = ((%(dtype)s *)x)[i];
                        %(acc_dtype)s &acc_i = ((%(acc_dtype)s *)acc)[i];
                        %(task)s
                    }
                } else {%(across)s}
            }
            return 0;
    """ % locals()


def make_vectorised_loops(names, dtypes, broadcast, n_inputs, like, task,
                          fortran, sub):
    """
    Produce the code of loops that may compute several elements at once.

    Parameters
    ----------
    names : list of str
        The arrays: inputs, then outputs, which are to be allocated.
    dtypes : list of str
        The C type of the elements of each.
    broadcast : list of tuples of bool
        Along which dimensions each is broadcast.
    n_inputs : int
    like : int
        The number of the array whose order in memory the loops follow.
    task : str
        Computes an element, "<name>_i" of each array.
    fortran : str
        A C condition: whether outputs are in Fortran order.

    Returns
    -------
    tuple of str
        Declarations, checks, allocations, loops.

    """
    n, nd = len(names), len(broadcast[0])
    patterns = ', '.join('"%s"' % ''.join('01'[x] for x in pattern)
                         for pattern in broadcast)
    decl = """
        PyArrayObject *arrays[%(n)i];
        npy_intp dims[%(nd)i];
        static const char *const broadcast[%(n)i] = {%(patterns)s};
    """ % locals()
    checks = ''.join("arrays[%i] = %s;\n" % pair
                     for pair in enumerate(names[:n_inputs]))
    checks += """
        if (theano_dims(%i, dims, %i, arrays, broadcast)) %s
    """ % (nd, n_inputs, sub['fail'])
    alloc = ""
    for i in xrange(n_inputs, n):
        alloc += """
        %(name)s = theano_output(%(name)s, %(nd)i, dims, %(type)s, %(fortran)s);
        if (!%(name)s) %(fail)s
        arrays[%(i)i] = %(name)s;
        """ % dict(name=names[i], nd=nd, i=i, type=type_num(dtypes[i]),
                   fortran=fortran, fail=sub['fail'])

    loop = """
        theano_elemwise(%(nd)i, dims, %(n)i, arrays, broadcast, %(like)i,
                        [](char *const *data, const npy_intp *sizes,
                           const npy_intp *strides) -> int {%(loops)s});
    """ % dict(nd=nd, n=n, like=like,
               loops=make_loops(names, dtypes, broadcast, task))
    return decl, checks, alloc, loop
