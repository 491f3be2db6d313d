"""Compute a low-pass filter with Theano's own FFT, rfft and irfft, which have gradients.

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
parts, smooth = filtered(signal[None].astype(theano.config.floatX))


def peaks(parts):
    """Return the frequencies with large amplitudes."""
    return numpy.nonzero(numpy.hypot(parts[0, :, 0], parts[0, :, 1]) > 1)[0].tolist()


print("frequencies before:", peaks(parts))
print("frequencies after:", peaks(filtered(smooth)[0]))
