"""Define the name that numpy.distutils of NumPy 1.26 imports; setuptools 74 removed this module."""


def get_build_version():
    """Return None, because Python was not compiled with MSVC."""
    return None
