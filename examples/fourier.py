"""Compute a low-pass filter with Theano's rfft and irfft, which have gradients.

Prints:
    frequencies before: [3, 20]
    frequencies after: [3]
"""

import numpy
import theano
import theano.tensor as T
from theano.tensor import fft

x = T.matrix("x")
# The last axis has real and imaginary parts.
spectrum = fft.rfft(x, norm="ortho")
low = T.set_subtensor(spectrum[:, 10:], 0)
filtered = theano.function([x], [spectrum, fft.irfft(low, norm="ortho")])

times = numpy.arange(64) / 64
signal = numpy.sin(2 * numpy.pi * 3 * times) + numpy.sin(2 * numpy.pi * 20 * times)
signal_spectrum, smooth_signal = filtered(signal[None].astype(theano.config.floatX))


def find_peaks(spectrum):
    """Return the frequencies whose amplitudes are larger than 1."""
    return numpy.nonzero(numpy.hypot(spectrum[0, :, 0], spectrum[0, :, 1]) > 1)[0].tolist()


print("frequencies before:", find_peaks(signal_spectrum))
print("frequencies after:", find_peaks(filtered(smooth_signal)[0]))
