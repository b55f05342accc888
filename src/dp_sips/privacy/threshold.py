"""How much noise a budget needs, and the noisy weight from which an item may be released.

The threshold is a maximum over k, the number of items of the one user whom nobody may notice:

    T = max_{1≤k≤Δ0} f(k),    f(k) = 1/√k + σ Φ⁻¹((1−δ)^{1/k}).

Lemma. On real k ≥ 1, f falls and then rises (either part may be missing), so T is f(1) or f(Δ0).

Proof. Write z = Φ⁻¹((1−δ)^{1/k}) and u = −log Φ(z) = −log(1−δ)/k. Then k z′ = u Φ(z)/φ(z), and f′
has the sign of σ k^{3/2} z′ − ½. It is enough that k^{3/2} z′ increases; k times the derivative of
its logarithm is A(z) − ½ with A(z) = u (1 + z Φ(z)/φ(z)), so it is enough that A ≥ ½ for every z.
Let Q = 1 − Φ and R(x) = Q(x)/φ(x).

  z ≥ 0: u ≥ Q, so A ≥ Q + Φ z R = 1 − Φ (1 − z R). With Φ ≤ ½ + φ(0) z and R ≥ 1/(1+z)
  (Birnbaum 1942), Φ (1 − z R) ≤ ½ (1 + 2φ(0) z)/(1 + z) ≤ ½, because 2φ(0) < 1.

  z = −x < 0 (only if δ > ½): A = −log Q(x) · (1 − x R(x)), and R ≤ 4/(3x + √(x²+8))
  (Sampford 1953) gives 1 − x R ≥ 2/(x² + 2 + x√(x²+8)) ≥ 1/(x² + 3).
  For x ≥ 1.4: −log Q = x²/2 + log √(2π) − log R ≥ (x² + 3)/2, as R(1.4) < 0.55.
  For x < 1.4: √(x²+8) < 3.16, and −log Q is convex, so above its tangents at 0 and at 1:
  0.693 + 0.797x serves up to x = 0.8, and 0.315 + 1.525x from x = 0.3 on. ∎

Public: everything here. No function in this file sees data.
"""

import math
from typing import Final

import numpy as np

from dp_sips.privacy.budget import Budget
from dp_sips.validation import check_whole

# Far above the error of a few roundings and of Φ⁻¹ (some 2⁻⁵¹), far below anything that matters.
_QUANTILE_ERROR: Final = 1e-13


def sigma(budget: Budget) -> float:
    """Return σ = 1/√(2ρ), rounded up (Algorithm 2, line 10).

    Guarantee: weights of L2 sensitivity 1 with noise N(0, σ²) are ρ-zCDP (the paper's
    def:gauss_mech): 2ρσ² ≥ 1 holds exactly.
    """
    return math.sqrt(0.5 / budget.rho) * (1 + 2.0**-51)


def threshold(
    budget: Budget, max_items: int, *, weight: float = 1.0, sensitivity: float = 1.0
) -> float:
    """Return T = max over k in 1..Δ0 of w/√k + sσ Φ⁻¹((1−δ)^{1/k}), rounded up (line 11).

    Guarantee: if a user holds any k ≤ Δ0 items alone, each with weight at most w/√k and noise
    s·`sigma(budget)`, then none of them reaches T with probability at least 1 − δ (the paper's
    thm:naive_priv, where w = s = 1). By the lemma above, with σ s/w for σ, two values of k decide,
    so a Δ0 of a million costs no more.
    """
    most, noise = check_whole("max_items", max_items), sensitivity * sigma(budget)
    return max(_threshold_of(budget.delta, noise, weight, k) for k in (1, most))


def laplace_threshold(scale: float, delta: float, max_items: int) -> float:
    """Return T = max over k in 1..Δ0 of 1/k − scale·log(2 (1 − (1−δ)^{1/k})), rounded up.

    Guarantee: if a user holds any k ≤ Δ0 items alone, each with weight at most 1/k and Laplace
    noise, then none of them reaches T with probability at least 1 − δ (Gopi et al. 2020).
    """
    k = np.arange(1.0, check_whole("max_items", max_items) + 1)
    chance = -np.expm1(math.log1p(-delta) / k)
    # Above a half, the noise may be below zero, and a threshold of the weight is high enough.
    quantile = np.maximum(0.0, -np.log(2 * chance))
    return float((1 / k + scale * quantile).max()) * (1 + _QUANTILE_ERROR)


def _threshold_of(delta: float, noise: float, weight: float, items: int) -> float:
    """Return f(k): (1 − P[one item reaches T])^k = 1 − δ, solved for T."""
    each = weight / math.sqrt(items)
    quantile = _normal_quantile(math.log1p(-delta) / items)
    return each + noise * quantile + _QUANTILE_ERROR * (each + noise * (1 + abs(quantile)))


def _normal_quantile(log_probability: float) -> float:
    # The logarithm keeps what (1−δ)^{1/k} would round to 1; scipy.special is slow to import.
    from scipy.special import ndtri_exp

    return float(ndtri_exp(log_probability))
