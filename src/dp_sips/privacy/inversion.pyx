# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Gaussians in whole steps, compiled, most of them without the inverse of Φ; and which ones matter.

128 random bits are the sign of a Gaussian and a probability p in (0, ½), whose leading bits are the
first word: `noise.gaussian`. Its size is z = −Φ⁻¹(p). Here p is read from 63 bits, and z from cubics,
2⁷ for each octave of p. Each has the values and slopes of the inverse at both ends of its piece, so
it is off by at most h⁴/384 times the largest fourth derivative in the piece, h being its length. The
derivatives of z are, up to their signs, 1/φ, z/φ², (1 + 2z²)/φ³ and z(7 + 6z²)/φ⁴, where φ = φ(z).
A piece that begins at p has h ≤ 2⁻⁷p. Where z ≥ 1, p ≤ φ/z, and the error is below
2⁻²⁸/384 · (7/z³ + 6/z) < 1.3e-10; where z < 1, h ≤ 2⁻⁹ and φ > 0.24, and it is below 1.5e-10. The bits
of p that are not read move z by less than 2⁻³⁸, and floats, the sampler's own included, by less than
1e-13. ERROR covers all of it five times over.

Guarantee: a whole number that is not called unsure is the one next to scale times the Gaussian, as
`noise.gaussian` and numpy round it: no error up to ERROR changes it.
"""

from functools import cache

from libc.math cimport fabs
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

import numpy as np

cdef enum:
    CUTS = 7  # bits: so many pieces has an octave
    LEAST = 39  # the first octave, of 63 bits; what is below is unsure
    SHIFT = 52 - CUTS  # bits of a double below those that tell its piece
    FIRST = (1023 + LEAST) << CUTS  # what the bits above them are for the first piece

cdef double ERROR = 1e-9
LARGEST_SCALE = 1e9
"""From here on, every row is unsure."""


@cache
def pieces():
    """Return the cubics, by the place between the ends of their piece; the last is zero, for p = ½."""
    from scipy.special import ndtri

    octaves = 2.0 ** np.arange(LEAST, 63)[:, None]
    ends = np.append(octaves * (1 + np.arange(1 << CUTS) / (1 << CUTS)), 2.0**63) / 2.0**64
    values = -ndtri(ends)
    slopes = -np.sqrt(2 * np.pi) * np.exp(values**2 / 2)
    rises, lengths = np.diff(values), np.diff(ends)
    low, high = slopes[: len(rises)] * lengths, slopes[1:] * lengths
    cubics = (values[: len(rises)], low, 3 * rises - 2 * low - high, low + high - 2 * rises)
    return np.append(np.stack(cubics, axis=1), np.zeros((1, 4)), axis=0)


def in_steps(const uint64_t[:, ::1] bits, double scale, double[::1] found, uint32_t[::1] unsure):
    """Write the whole numbers next to `scale` times Gaussians; return how many rows are unsure.

    Unsure rows come first in `unsure`, which is longer than `bits` by one.
    """
    cdef const double[:, ::1] cubics = pieces()
    cdef Py_ssize_t i, place
    cdef uint32_t count = 0
    cdef uint64_t word, rest = (<uint64_t>1 << SHIFT) - 1
    cdef double t, size, whole, used = min(scale, <double>LARGEST_SCALE)
    cdef double sure = 0.5 - ERROR * used, unit = 2.0**-SHIFT
    if found.shape[0] != bits.shape[0] or unsure.shape[0] <= bits.shape[0]:
        raise ValueError("bits and numbers must have the same length, and rows must be longer")
    with nogil:
        for i in range(bits.shape[0]):
            size = <double><int64_t>(bits[i, 0] >> 1)
            memcpy(&word, &size, sizeof(word))
            place = <Py_ssize_t>(word >> SHIFT) - FIRST
            t = <double><int64_t>(word & rest) * unit
            unsure[count] = <uint32_t>i
            if place < 0:
                count += 1
                continue
            size = (cubics[place, 3] * t + cubics[place, 2]) * t + cubics[place, 1]
            size = (size * t + cubics[place, 0]) * used
            whole = <double><int64_t>(size + 0.5)
            count += not fabs(size - whole) < sure
            found[i] = <double>(2 * <int64_t>(bits[i, 1] & 1) - 1) * whole
    return count


def candidates(
    const uint64_t[:, ::1] bits, const uint64_t[::1] weights, uint32_t[::1] rows, uint64_t bound,
    double beyond, double threshold, double sigma, double unit,
):
    """Write the rows with a weight that need at most `beyond`, or have leading bits up to `bound`.

    What a row needs is worked out, and rounded, as in `decide`. Returns how many rows there are;
    `rows` is longer than `bits` by one.
    """
    cdef Py_ssize_t i
    cdef uint32_t count = 0
    cdef double needed
    if weights.shape[0] != bits.shape[0] or rows.shape[0] <= bits.shape[0]:
        raise ValueError("bits and weights must have the same length, and rows must be longer")
    with nogil:
        for i in range(bits.shape[0]):
            rows[count] = <uint32_t>i
            needed = (threshold - <double>weights[i] / unit) / sigma
            # Without branches: luck is hard to predict.
            count += (weights[i] > 0) & ((needed <= beyond) | (bits[i, 0] <= bound))
    return count
