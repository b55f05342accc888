"""How likely an item is to be released: what several mechanisms share. Nothing here sees data."""

import math

import numpy as np

from dp_sips.privacy.arrays import Floats
from dp_sips.privacy.weights import UNIT, weight


def missed_by_threshold(holders: Floats, items: int, threshold: float, sigma: float) -> Floats:
    """Return the log of the chance that Gaussian noise keeps an item below its threshold.

    Each of its holders has `items` items and gives 1/√items to each.
    """
    from scipy.special import log_ndtr

    return np.asarray(log_ndtr((threshold - holders * (weight(items) / UNIT)) / sigma))


def binomial(trials: int, chance: float) -> tuple[Floats, Floats]:
    """Return the likely values of a binomial and their probabilities; the rest is below 1e-15."""
    from scipy.special import gammaln

    mean = trials * chance
    reach = 9 * math.sqrt(mean * (1 - chance)) + 40
    values = np.arange(max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach)) + 1.0)
    logs = (
        gammaln(trials + 1.0)
        - gammaln(values + 1)
        - gammaln(trials - values + 1)
        + values * math.log(chance)
        + (trials - values) * math.log1p(-chance)
    )
    return values, np.exp(logs)
