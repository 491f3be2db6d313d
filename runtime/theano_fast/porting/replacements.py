"""Map names that libraries removed to their replacements.

An entry also applies to the submodules and attributes of its name. The table omits names that
THEANO_FAST_OLD_NAMES restores (old_names.py). It also omits names whose import or call raises an
error with the replacement, such as most names in theano.sandbox.cuda.
"""

from collections.abc import Mapping

# Maps a removed name to the text to write instead. Words in capitals are placeholders.
REPLACEMENTS: Mapping[str, str] = {
    "joblib.MemmapingPool": "joblib.pool.MemmappingPool",
    "joblib.pool.MemmapingPool": "joblib.pool.MemmappingPool",
    "scipy.misc.comb": "scipy.special.comb",
    "scipy.misc.factorial": "scipy.special.factorial",
    "scipy.misc.imread": "imageio.v2.imread, or numpy.asarray(PIL.Image.open(FILE))",
    "scipy.misc.imresize": "PIL.Image.fromarray(IMAGE).resize((WIDTH, HEIGHT))",
    "scipy.misc.imrotate": "PIL.Image.fromarray(IMAGE).rotate(ANGLE)",
    "scipy.misc.imsave": "imageio.v2.imwrite, or PIL.Image.fromarray(IMAGE).save(FILE)",
    "scipy.misc.lena": "scipy.datasets.face",
    "scipy.misc.logsumexp": "scipy.special.logsumexp",
    "scipy.misc.toimage": "PIL.Image.fromarray",
    "scipy.stats.nanmean": "numpy.nanmean",
    "scipy.stats.nanmedian": "numpy.nanmedian",
    "scipy.stats.nanstd": "numpy.nanstd",
    "scipy.weave": "an Op with C code, or numba",
    "sklearn.cross_validation": "sklearn.model_selection",
    "sklearn.datasets.fetch_mldata": "sklearn.datasets.fetch_openml",
    "sklearn.externals.joblib": "joblib",
    "sklearn.externals.six": "six",
    "sklearn.grid_search": "sklearn.model_selection",
    "sklearn.lda": "sklearn.discriminant_analysis",
    "sklearn.learning_curve": "sklearn.model_selection",
    "sklearn.mixture.GMM": "sklearn.mixture.GaussianMixture",
    "sklearn.preprocessing.Imputer": "sklearn.impute.SimpleImputer",
    "sklearn.qda": "sklearn.discriminant_analysis",
    "sklearn.utils.linear_assignment_": "scipy.optimize.linear_sum_assignment",
    "theano.Module": "theano.function with shared variables",
    "theano.compile.module": "theano.function with shared variables",
    "theano.misc.cudamat_utils": "pygpu.gpuarray.GpuArray",
    "theano.misc.gnumpy_utils": "pygpu.gpuarray.GpuArray",
    "theano.misc.pycuda_example": "theano.gpuarray.basic_ops.GpuKernelBase",
    "theano.misc.pycuda_init": "theano.gpuarray.basic_ops.GpuKernelBase",
    "theano.misc.pycuda_utils": "theano.gpuarray.basic_ops.GpuKernelBase",
    "theano.sandbox.cuda.use": "the flag device=cuda0; on a machine without a GPU, remove the call",
    "theano.sandbox.debug": "theano.compile.nanguardmode, or the mode DebugMode",
    "theano.sandbox.neighbourhoods": "theano.tensor.nnet.neighbours",
    "theano.sandbox.scan_module": "theano.scan_module",
    "theano.sandbox.symbolic_module": "theano.function with shared variables",
    "theano.sandbox.theano_object": "theano.function with shared variables",
    "theano.tensor.deprecated": "theano.function with shared variables",
    "theano.tensor.randomstreams": "theano.tensor.shared_randomstreams",
}


def find_replacement(name: str) -> str:
    """Return the replacement of a dotted name, "" if there is none."""
    while name:
        if name in REPLACEMENTS:
            return REPLACEMENTS[name]
        name = name.rpartition(".")[0]
    return ""
