"""The only file that touches randomness; the noise of counts is OpenDP's (mechanisms/discrete.py).

Noise is a pure function of (secret key, purpose, item): a retried task, a second engine or a
recomputed block of a cache draws the same noise again. An item is a 16-byte block; AES-128 under a
key derived for the purpose turns it into 128 bits that nobody without the key can tell from
random, and those bits become one standard Gaussian or one standard Laplace number.

Guarantee: for every |t| ≤ 10.5, P[gaussian ≥ t] is within a factor 1 ± `SAMPLER_ERROR` of 1 − Φ(t),
and P[gaussian < t] of Φ(t); beyond, both tails are below `SAMPLER_TAIL`. The same holds for laplace
and |t| ≤ 57. README.md, "The sampler", derives the bounds and says where they are paid for.
"""

import hashlib
import secrets
from enum import StrEnum
from typing import Final, Never, Self

import numpy as np
from numpy.typing import NDArray

from dp_sips.privacy import inversion
from dp_sips.privacy.arrays import Blocks, Floats, Weights

SAMPLER_ERROR: Final = 2.0**-40
"""How far, relatively, the odds of one verdict may be from those of an exact Gaussian."""

SAMPLER_TAIL: Final = 2.0**-82
"""How likely, at the most, the sampler and an exact Gaussian differ where that bound ends."""

BEYOND: Final = 4.0
"""Where verdicts need more than this many standard deviations, most are settled by integers."""


class Purpose(StrEnum):
    """What secret bits are for: bits of one purpose say nothing about those of another.

    The noise of rounds has a purpose for each round: `Key.noise_of_round`.
    """

    LONG_USERS = "long users"
    LONG_ITEMS = "long items"
    USER_TABLE = "table of users"
    ITEM_TABLE = "table of items"
    BOUNDING_USERS = "bounding users"
    BOUNDING_ITEMS = "bounding items"
    TURNS = "turns of users"
    LOOK = "look at the data"
    COUNTS = "counts of users"
    RUN = "name of the run"


class Key:
    """The secret of one run; it never appears in a repr, a log or a result.

    Sensitive: anyone who knows the key can recompute the noise.
    """

    __slots__ = ("_secret", "is_test")

    def __init__(self, secret: bytes, *, is_test: bool) -> None:
        self._secret = secret
        self.is_test = is_test

    @classmethod
    def fresh(cls) -> Self:
        """Draw a key from the operating system's cryptographic generator."""
        return cls(secrets.token_bytes(32), is_test=False)

    @classmethod
    def for_tests(cls, seed: int) -> Self:
        """Make the key that belongs to `seed`. A release made with it is not private."""
        return cls(hashlib.blake2b(b"test %d" % seed).digest()[:32], is_test=True)

    def of_level(self, level: int) -> Self:
        """Return the key of one of several releases: independent of the others' keys."""
        secret = hashlib.blake2b(b"level %d" % level, key=self._secret, digest_size=32).digest()
        return type(self)(secret, is_test=self.is_test)

    def saved(self) -> bytes:
        """Return the secret, for the file of a run that may have to go on, and nothing else."""
        return self._secret

    @classmethod
    def restored(cls, secret: bytes, *, is_test: bool) -> Self:
        """Return the key that was saved: the same noise again, for the same run."""
        return cls(secret, is_test=is_test)

    def replaces(self, fresh: Self) -> bool:
        """Whether a run may go on with this key in place of a fresh one."""
        repeated = self._secret == fresh._secret
        return self.is_test == fresh.is_test and (repeated or not self.is_test)

    def word(self, purpose: Purpose) -> int:
        """Return 64 bits that belong to `purpose`."""
        return int.from_bytes(self._derive(purpose)[:8], "little")

    def scrambler(self, purpose: Purpose) -> "Scrambler":
        """Return the keyed pseudo-random function that belongs to `purpose`."""
        return Scrambler(self._derive(purpose))

    def noise_of_round(self, index: int) -> "Scrambler":
        """Return the source of noise of round `index`: independent of every other purpose's."""
        return Scrambler(self._derive(f"noise of round {index}"))

    def _derive(self, purpose: str) -> bytes:
        return hashlib.blake2b(purpose.encode(), key=self._secret, digest_size=16).digest()

    def __reduce__(self) -> Never:
        raise TypeError("a Key stays in the process that drew it: it cannot be pickled or copied")

    def __repr__(self) -> str:
        return f"Key(is_test={self.is_test})"


class Scrambler:
    """AES-128 on columns of blocks: equal blocks give equal bits, others independent bits."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __call__(self, blocks: Blocks) -> Blocks:
        """Return 128 pseudo-random bits for each block."""
        # A slow import, and not needed to make a plan.
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        plain = np.ascontiguousarray(blocks, dtype="<u8")
        out = np.empty(plain.nbytes + 15, dtype=np.uint8)  # update_into asks for the spare 15
        # ECB on its own is the pseudo-random permutation itself; no message is being hidden here.
        aes = Cipher(algorithms.AES(self._key), modes.ECB()).encryptor()  # noqa: S305
        aes.update_into(plain.reshape(-1).view(np.uint8).data, out.data)
        return out[: plain.nbytes].view("<u8").reshape(-1, 2)


def uniform(bits: Blocks) -> Floats:
    """Turn 128 random bits each into uniform numbers in (−½, ½).

    One bit is the sign. A float keeps its relative precision near 0, so small probabilities on
    either side are as exact as large ones.
    """
    size = _sizes(bits)
    return np.where(bits[:, 1] & 1, size, -size)


def _sizes(bits: Blocks) -> Floats:
    """Return (a + (b + ½)/2⁶³)/2⁶⁵ for 64 bits a and 63 bits b of each."""
    sizes: Floats = np.add(bits[:, 1] >> 1, 0.5, dtype=np.float64)
    sizes *= 2.0**-63
    sizes += bits[:, 0]
    sizes *= 2.0**-65
    return sizes


def gaussian(bits: Blocks) -> Floats:
    """Turn 128 random bits each into standard Gaussians, by inversion.

    The size of a uniform number is the probability of a value further out on its side.
    """
    from scipy.special import ndtri

    values: Floats = ndtri(_sizes(bits))  # below zero …
    values.view(np.uint64)[:] ^= bits[:, 1] << np.uint64(63)  # … unless the last bit is set
    return values


def in_steps(bits: Blocks, scale: float) -> Floats:
    """Return `rint(scale * gaussian(bits))`, to the bit, without working out most Gaussians."""
    found, unsure = np.empty(len(bits)), np.empty(len(bits) + 1, dtype=np.uint32)
    rows = unsure[: inversion.in_steps(bits, scale, found, unsure)]
    found[rows] = np.rint(gaussian(bits.take(rows, axis=0)) * scale)
    return found


def laplace(bits: Blocks) -> Floats:
    """Turn 128 random bits each into Laplace numbers of scale 1, by inversion."""
    signed = uniform(bits)
    return np.asarray(-np.sign(signed) * np.log(2 * np.abs(signed)))


def candidates(bits: Blocks, weights: Weights, *needs: float) -> NDArray[np.uint32]:
    """Return the rows of items with a weight, without most of those that have no chance.

    `needs` are the threshold, σ and the unit of weights. Left out are only items that need a
    Gaussian above `BEYOND`, and have one below it: its leading bits are above a bound.
    """
    from scipy.special import ndtr

    # The factor covers the rounding of ndtr and ndtri many times over.
    bound = int(float(ndtr(-BEYOND)) * 2.0**65 * (1 + 1e-9))
    rows = np.empty(len(bits) + 1, dtype=np.uint32)
    return rows[: inversion.candidates(bits, weights, rows, bound, BEYOND, *needs)]
