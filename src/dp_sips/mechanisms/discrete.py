"""Discrete Gaussian noise for counts, drawn once, on the driver, by OpenDP.

OpenDP samples in whole numbers and fractions, from the operating system's generator: what is
released was never a float. It takes no seed, so that of a test key is a rounded Gaussian.
"""

from importlib.util import find_spec
from typing import Any

import numpy as np

from dp_sips.errors import UsageError
from dp_sips.privacy.arrays import Integers
from dp_sips.privacy.noise import Key, Purpose, gaussian


def require_sampler(key: Key) -> None:
    """Reject counts that need OpenDP where it is missing, before any data is read."""
    if not key.is_test and find_spec("opendp") is None:
        raise UsageError("counts need OpenDP for their noise: pip install 'dp-sips[counts]'")


def with_noise(counts: Integers, sigma: float, key: Key) -> Integers:
    """Return counts plus discrete Gaussian noise, independent for each.

    Guarantee: `counting.py`'s, for counts that one user moves by an L2 norm of at most s.
    Public: σ and the result. Sensitive: the counts.
    """
    if key.is_test:
        places = np.arange(len(counts), dtype=np.uint64)
        bits = key.scrambler(Purpose.COUNTS)(np.stack((places, np.zeros_like(places)), axis=1))
        return np.asarray(counts + np.rint(gaussian(bits) * sigma).astype(np.int64))
    return np.array(measurement(sigma)(counts.tolist()), dtype=np.int64)


def measurement(sigma: float) -> Any:
    """Return OpenDP's measurement: whole numbers in, whole numbers with noise out."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import GLOBAL_FEATURES, disable_features, enable_features

    allowed = "contrib" in GLOBAL_FEATURES
    enable_features("contrib")
    try:
        return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=sigma)
    finally:
        if not allowed:  # as the caller had it
            disable_features("contrib")
