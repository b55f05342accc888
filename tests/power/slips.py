"""Slips that would break the promise, and the check that catches each: mutation testing by hand.

Every entry is one small change in one function of the product, of the kind that a tired colleague
could make and a reviewer could miss.
"""

from dataclasses import dataclass
from typing import Final

from tests.power.breaking import Patch


@dataclass(frozen=True)
class Slip:
    """A change that breaks the promise.

    Attributes:
        what: What is wrong, in a few words.
        patch: The change.
        caught_by: The name of a check that fails with it.
    """

    what: str
    patch: Patch
    caught_by: str


def _slip(what: str, caught_by: str, where: str, old: str, new: str) -> Slip:
    return Slip(what, Patch(where, old, new), caught_by)


_NOISE: Final = [
    _slip(
        "σ is 10 % too small",
        "formulas of sips",
        "privacy.threshold:sigma",
        "math.sqrt(0.5 / budget.rho)",
        "0.9 * math.sqrt(0.5 / budget.rho)",
    ),
    _slip(
        "σ is 10 % too small where verdicts fall",
        "gaussian verdicts",
        "privacy.decide:decide",
        "/ sigma",
        "/ (0.9 * sigma)",
    ),
    _slip(
        "coins fall 5 % too often",
        "coin verdicts",
        "privacy.decide:toss",
        "uniform < yes",
        "uniform < 1.05 * yes",
    ),
    _slip(
        "a Laplace scale 10 % too small where verdicts fall",
        "laplace verdicts",
        "privacy.decide:decide_with_laplace",
        "/ scale",
        "/ (0.9 * scale)",
    ),
    _slip(
        "the second part of a Gaussian's bits is left out",
        "gaussian verdicts",
        "privacy.noise:gaussian",
        "ndtri(_sizes(bits))",
        "ndtri((bits[:, 0] >> 52 << 52) * 2.0**-65 + 2.0**-130)",
    ),
    _slip(
        "the sign is a bit of the size",
        "gaussian verdicts",
        "privacy.noise:gaussian",
        "bits[:, 1] << np.uint64(63)",
        "bits[:, 0] << np.uint64(63)",
    ),
    _slip(
        "far tails are decided by too small a bound",
        "gaussian verdicts",
        "privacy.noise:candidates",
        "ndtr(-BEYOND)",
        "ndtr(-1.5 * BEYOND)",
    ),
    _slip(
        "items that need less than that are left out",
        "gaussian verdicts",
        "privacy.noise:candidates",
        "bound, BEYOND",
        "bound, 1.0",
    ),
    _slip(
        "Laplace noise without a sign",
        "laplace verdicts",
        "privacy.noise:laplace",
        "-np.sign(signed) *",
        "-",
    ),
    _slip(
        "policy-laplace's scale without its sensitivity",
        "formulas of policy-laplace",
        "mechanisms.policy_laplace:PolicyLaplace.design",
        "sensitivity(L1, bits, max_items) / epsilon",
        "1 / epsilon",
    ),
    _slip(
        "dpsu's noise without its sensitivity",
        "formulas of dpsu",
        "mechanisms.dpsu:Dpsu.design",
        "sigma=moves * sigma(budget)",
        "sigma=sigma(budget)",
    ),
    _slip(
        "dpsu's sensitivity forgets Δ0",
        "formulas of dpsu",
        "mechanisms.turns:sensitivity",
        "(items + 8)",
        "8",
    ),
    _slip(
        "MAD's noise without its sensitivity",
        "formulas of mad",
        "mechanisms.mad:Mad._round",
        "moves * sigma(budget)",
        "sigma(budget)",
    ),
    _slip(
        "MAD's sensitivity without d_max",
        "formulas of mad",
        "mechanisms.adaptive:sensitivity",
        "math.sqrt(largest)",
        "1",
    ),
    _slip(
        "evidence with σ for the whole budget in each round",
        "formulas of cumulative",
        "mechanisms.cumulative:_rounds",
        "2 * rho * share)",
        "2 * rho)",
    ),
    _slip(
        "evidence with σ 10 % too small where verdicts fall",
        "evidence verdicts",
        "mechanisms.cumulative:decide_on_evidence",
        "sigma * _STEPS",
        "0.9 * sigma * _STEPS",
    ),
]

_THRESHOLDS: Final = [
    _slip(
        "the threshold is 5 % too low",
        "formulas of weighted-gaussian",
        "privacy.threshold:threshold",
        "return max(",
        "return 0.95 * max(",
    ),
    _slip(
        "the threshold is 5 % too low where verdicts fall",
        "gaussian verdicts",
        "privacy.decide:decide",
        "(threshold -",
        "(0.95 * threshold -",
    ),
    _slip(
        "the threshold is for one item only",
        "formulas of sips",
        "privacy.threshold:threshold",
        "for k in (1, most)",
        "for k in (1, 1)",
    ),
    _slip(
        "the threshold forgets the weight itself",
        "formulas of weighted-gaussian",
        "privacy.threshold:_threshold_of",
        "return each + noise",
        "return noise",
    ),
    _slip(
        "Laplace's threshold is for one item only",
        "formulas of policy-laplace",
        "privacy.threshold:laplace_threshold",
        "1 / k + scale",
        "1 / k[:1] + scale",
    ),
    _slip(
        "gw's target is not whole",
        "formulas of gw",
        "mechanisms.gw:Gw.design",
        "max(1, round(target))",
        "max(1, target)",
    ),
    _slip(
        "mad2r's second threshold forgets b_max",
        "formulas of mad2r",
        "mechanisms.mad:Mad._round",
        "weight=highest",
        "weight=1.0",
    ),
    _slip(
        "dpsu's threshold without its sensitivity",
        "formulas of dpsu",
        "mechanisms.dpsu:Dpsu.design",
        "threshold=threshold(budget, max_items, sensitivity=moves)",
        "threshold=threshold(budget, max_items)",
    ),
    _slip(
        "items without weight are released",
        "gaussian verdicts",
        "privacy.decide:decide",
        "candidates(bits, weights,",
        "candidates(bits, weights + np.uint64(1),",
    ),
    _slip(
        "items without weight are released by Laplace noise",
        "laplace verdicts",
        "privacy.decide:decide_with_laplace",
        "(weights > 0) & ",
        "",
    ),
    _slip(
        "mad2r releases what has no weight, on the engines",
        "cut items are never released",
        "mechanisms.mad:decide_and_note",
        "return noisy, (weights > 0) & (noisy >= threshold)",
        "return noisy, (noisy >= threshold)",
    ),
    _slip(
        "mad2r keeps what has no weight",
        "noted verdicts",
        "mechanisms.mad:decide_and_note",
        "(weights > 0) & (noisy >= drop)",
        "(noisy >= drop)",
    ),
    _slip(
        "mad2r releases items that everybody's cut left out",
        "noted verdicts",
        "mechanisms.mad:decide_and_note",
        "return noisy, (weights > 0) & (noisy >= threshold)",
        "return noisy, (noisy >= threshold)",
    ),
    _slip(
        "evidence releases items that everybody's cut left out",
        "evidence verdicts",
        "mechanisms.cumulative:decide_on_evidence",
        "held & (total >= threshold)",
        "(total >= threshold)",
    ),
]

_BUDGETS: Final = [
    _slip(
        "δ is not split between rounds",
        "formulas of sips",
        "privacy.budget:Budget.split",
        "_float_below(delta * share / whole)",
        "_float_below(delta)",
    ),
    _slip(
        "ρ is not split between rounds",
        "formulas of sips",
        "privacy.budget:Budget.split",
        "_float_below(rho * share / whole)",
        "_float_below(rho)",
    ),
    _slip(
        "the threshold's part of δ is spent twice",
        "formulas of weighted-gaussian",
        "privacy.budget:_delta_at",
        "math.nextafter(own + noise, math.inf)",
        "max(own, noise)",
    ),
    _slip(
        "the Gaussian's curve of half the distance",
        "formulas of weighted-gaussian",
        "privacy.budget:gaussian_delta",
        "ratio = epsilon / mu",
        "mu = mu / 2; ratio = epsilon / mu",
    ),
    _slip(
        "composition keeps the largest δ",
        "formulas of sips",
        "privacy.budget:compose",
        "missed *= 1 - Fraction(budget.delta)",
        "missed = min(missed, 1 - Fraction(budget.delta))",
    ),
    _slip(
        "both of mad2r's rounds have all of ε",
        "formulas of mad2r, basic",
        "mechanisms.mad:Mad2R._parts",
        "part * epsilon,",
        "epsilon,",
    ),
    _slip(
        "mad2r does not pay for its intervals",
        "formulas of mad2r",
        "mechanisms.mad:Mad2R.design",
        "cascade_loss(1 + cells(levels, first.sigma))",
        "cascade_loss(2)",
    ),
    _slip(
        "mad2r's guarantee without its first round",
        "formulas of mad2r",
        "mechanisms.mad:Mad2R.design",
        "for r in (first, second))",
        "for r in (second,))",
    ),
    _slip(
        "the sampler's cost without Δ0",
        "formulas of sips",
        "privacy.guarantee:SamplerCost.of",
        "3 * rounds * max_items",
        "3 * rounds",
    ),
    _slip(
        "the cascade's cost of one round for two",
        "formulas of mad2r",
        "privacy.guarantee:cascade_loss",
        "2 * rounds *",
        "1 *",
    ),
    _slip(
        "the lattice's loss without Δ0",
        "formulas of cumulative",
        "mechanisms.evidence:lattice_cost",
        "loss = 3 * max_items",
        "loss = 3",
    ),
    _slip(
        "the lattice's tail without Δ0",
        "formulas of cumulative",
        "mechanisms.evidence:lattice_cost",
        "tail = max_items *",
        "tail = 1.0 *",
    ),
    _slip(
        "D(t) counts with thresholds for a tenth of the tail",
        "formulas of cumulative",
        "mechanisms.evidence:JointBound._releases",
        "tails * self._ends",
        "0.1 * tails * self._ends",
    ),
    _slip(
        "G(t) with half of ρ",
        "formulas of cumulative",
        "mechanisms.evidence:JointBound.noise",
        "np.sqrt(2 * (rho * points + more))",
        "np.sqrt(rho * points + more)",
    ),
    _slip(
        "the accounting counts on an earlier, lower drop level",
        "claims of noise",
        "mechanisms.claims:claim_chances",
        "schedule.edges(index)",
        "schedule.edges(max(index - 1, 0))",
    ),
    _slip(
        "drop levels are compared after rounding, not before",
        "rounding lowers no claim",
        "mechanisms.evidence:claim_edges",
        "np.stack(rows) - _HALF_STEP",
        "np.stack(rows) + _HALF_STEP",
    ),
    _slip(
        "a coin of slope 1.1 ε",
        "coins of single",
        "mechanisms.single:_tables",
        "grow, shrink = math.exp(epsilon)",
        "grow, shrink = math.exp(1.1 * epsilon)",
    ),
    _slip(
        "matching's coin begins at 2 δ",
        "coins of matching",
        "mechanisms.single:_tables",
        "released, missed = [0.0], [1.0]",
        "released, missed = [delta], [1 - delta]",
    ),
    _slip(
        "flat weights pay for half of a move",
        "coins of flat-rule",
        "mechanisms.release_rule:_costs",
        "return 1 / np.searchsorted",
        "return 2 / np.searchsorted",
    ),
    _slip(
        "a release rule that hides half of a move",
        "coins of sips-rule",
        "mechanisms.release_rule:_grow",
        "(alpha - 1) * rule.e * costs",
        "(alpha - 1) * 2 * rule.e * costs",
    ),
    _slip(
        "release rules forget δ of all rounds except one",
        "coins of sips-rule",
        "mechanisms.release_rule:_compose",
        "for rule in rules)\n    return",
        "for rule in rules[-1:])\n    return",
    ),
]

_WEIGHTS: Final = [
    _slip(
        "weights of 1/k^0.4",
        "one user weighs 1",
        "privacy.weights:weight",
        "math.isqrt(UNIT * UNIT // count)",
        "int(UNIT / count**0.4)",
    ),
    _slip(
        "no truncation in the reference engine",
        "one user weighs 1",
        "engines.reference:ReferenceContributions.weigh",
        "items[:max_items]",
        "items[:]",
    ),
    _slip(
        "truncation off by one in the reference engine",
        "one user weighs 1",
        "engines.reference:ReferenceContributions.weigh",
        "items[:max_items]",
        "items[: max_items + 1]",
    ),
    _slip(
        "truncation off by one in the memory engine",
        "one user weighs 1",
        "engines.memory.contributions:MemoryContributions.weigh",
        "min(max_items, self._longest)",
        "min(max_items + 1, self._longest)",
    ),
    _slip(
        "sets are not cut once in the memory engine",
        "sets are cut once",
        "engines.memory.contributions:MemoryContributions.truncate",
        "np.uint64(max_items))",
        "np.uint64(max_items + 3))",
    ),
    _slip(
        "scattered repeats count in the memory engine",
        "repeated rows count once",
        "engines.memory.loading:_Repeats._gathered",
        "kernels.drop_repeats(items, counts, ends, begin, *share)",
        "int(ends[share[1] - 1])",
    ),
    _slip(
        "repeated rows count in the reference engine",
        "one user weighs 1",
        "engines.reference:ReferenceEngine.load",
        "sets = [sorted(ranks[user], key=ranks[user].__getitem__) for user in turns]",
        "sets = [sorted(times[user].elements(), key=ranks[user].__getitem__) for user in turns]",
    ),
    _slip(
        "found items stay in the reference engine",
        "found items leave",
        "engines.reference:ReferenceContributions.remove",
        "self._discard(verdicts)\n",
        "pass\n",
    ),
    _slip(
        "found items stay in the memory engine",
        "found items leave",
        "engines.memory.contributions:MemoryContributions.remove",
        "self._released[numbers] = self._gone[numbers] = True",
        "self._released[numbers] = True",
    ),
    _slip(
        "evidence is forgotten in the reference engine",
        "evidence is kept",
        "engines.reference:ReferenceContributions.decide_on_evidence",
        "self._evidence.update(zip(weights, evidence.tolist(), strict=True))",
        "self._evidence.clear()",
    ),
    _slip(
        "evidence is forgotten in the memory engine",
        "engines agree",
        "engines.memory.contributions:MemoryContributions.decide_on_evidence",
        "weights, evidence, *known",
        "weights, 0 * evidence, *known",
    ),
    _slip(
        "evidence is forgotten on a retry",
        "retries see the same evidence",
        "engines.spark.deciding:DecideItemsOnEvidence.__call__",
        "evidence, released, claims = self.decide(sums.blocks, sums.weights, sums.evidence)",
        "first = not vars(self).get('ran'); vars(self)['ran'] = True; "
        "evidence, released, claims = self.decide("
        "sums.blocks, sums.weights, sums.evidence * first)",
    ),
    _slip(
        "a user pays twice the budget",
        "payments",
        "mechanisms.turns:Proportional.payments",
        "[int(gap * scale) for gap in gaps]",
        "[min(gap, int(2 * gap * scale)) for gap in gaps]",
    ),
    _slip(
        "favourites pay more than the target",
        "payments in turns",
        "engines.reference:ReferenceContributions.pay_favourites",
        "min(alike, key=self._word)] += 1",
        "min(alike, key=lambda item: -paid[item])] += 2",
    ),
    _slip(
        "MAD spreads −1/(2√d_max) too much",
        "mad moves",
        "mechanisms.adaptive:Spread.returned",
        "self.lowest - 0.5 / math.sqrt(self.largest)",
        "self.lowest",
    ),
    _slip(
        "MAD takes nothing from popular items",
        "mad moves",
        "mechanisms.adaptive:Spread.second",
        "own - lost + bonus[users]",
        "own + bonus[users]",
    ),
    _slip(
        "MAD's own weights have a norm above 1",
        "mad moves",
        "mechanisms.adaptive:Spread._own",
        "* _SHAVE",
        "* 1.02",
    ),
    _slip(
        "MAD with adaptive users above d_max",
        "mad moves",
        "mechanisms.adaptive:Spread._shares",
        " & (sizes <= self.largest)",
        "",
    ),
    _slip(
        "MAD's bonus is not divided by d_max",
        "mad items of ones own",
        "mechanisms.adaptive:Spread.second",
        " / self.largest",
        "",
    ),
]

_TURNS: Final = [
    _slip(
        "turns depend on how many users there are",
        "turns stay",
        "privacy.bounding:turns",
        "= scrambled(users[some]).view(",
        "= (scrambled(users[some]) * np.uint64(len(users))).view(",
    ),
    _slip(
        "fuller items are preferred",
        "one vote",
        "engines.reference:ReferenceContributions.settle",
        "seated[desk].append(key)\n",
        "seated[desk].append((-len(seated[desk]), *key[1:]))\n",
    ),
    _slip(
        "matching ends before nobody stands",
        "one vote",
        "engines.reference:ReferenceContributions.settle",
        "while standing:",
        "for _ in range(len(lists) + 1):\n        if not standing: break",
    ),
    _slip(
        "the number of seats depends on the number of users",
        "one vote",
        "engines.reference:ReferenceContributions.settle",
        "if desk[1] else seats",
        "if desk[1] else seats + len(lists) % 2",
    ),
    _slip(
        "loyalty goes by the number of a user's turn",
        "loyalty is ones own",
        "engines.reference:ReferenceContributions.settle",
        "bounding.loyal(self._user_words,",
        "bounding.loyal(np.arange(len(counted), dtype=np.uint64) << np.uint64(60),",
    ),
    _slip(
        "the order of lists is that of appearance",
        "engines agree",
        "engines.reference:ReferenceContributions._places",
        "return {items[row]: place for place, row in enumerate(order)}",
        "return {item: place for place, item in enumerate(items)}",
    ),
    _slip(
        "spare seats in the first lap",
        "engines agree",
        "engines.reference:_requests",
        "spare and left == 1",
        "spare and left == laps + 1",
    ),
]

_KEYS: Final = [
    _slip(
        "one noise for two rounds",
        "no two purposes meet",
        "select:run_rounds",
        "key.noise_of_round(index)",
        "key.noise_of_round(index // 2)",
    ),
    _slip(
        "turns share the bits of a round's noise",
        "no two purposes meet",
        "privacy.bounding:turns",
        "key.scrambler(Purpose.TURNS)",
        "key.noise_of_round(0)",
    ),
    _slip(
        "the look shares the bits of a round's noise",
        "no two purposes meet",
        "select:run_rounds",
        "key.scrambler(Purpose.LOOK)",
        "key.noise_of_round(0)",
    ),
    _slip(
        "names of keys share the bits of counts",
        "counts have bits of their own",
        "engines.encoding:table_blocks",
        "Purpose.LONG_ITEMS",
        "Purpose.COUNTS",
    ),
    _slip(
        "turns share the word of bounding",
        "no two purposes meet",
        "privacy.bounding:turns",
        "key.scrambler(Purpose.TURNS)",
        "key.scrambler(Purpose.BOUNDING_USERS)",
    ),
    _slip(
        "all purposes have one secret",
        "no two purposes meet",
        "privacy.noise:Key._derive",
        "purpose.encode()",
        "b'noise'",
    ),
    _slip(
        "workers know the bits of turns",
        "workers know nothing of the noise",
        "engines.spark.wire:WorkerKey.of",
        "for purpose in _BOUNDING}",
        "for purpose in (*_BOUNDING, Purpose.TURNS)}",
    ),
    _slip(
        "one key for two runs",
        "runs share no bits",
        "privacy.noise:Key.fresh",
        "secrets.token_bytes(32)",
        "bytes(32)",
    ),
    _slip(
        "the numbers of a look share their noise",
        "look noise",
        "privacy.decide:noisy_integer",
        "[[place, 0]]",
        "[[0, 0]]",
    ),
]

_LOOK: Final = [
    _slip(
        "the look has no noise",
        "look noise",
        "privacy.decide:noisy_integer",
        "round(float(laplace(bits)[0]) * scale)",
        "0",
    ),
    _slip(
        "the look's lengths have the noise of a count",
        "look spends its part",
        "mechanisms.auto:SizeLook.choose",
        "scale=_MIDDLE * scales[1]",
        "scale=scales[1]",
    ),
    _slip(
        "the look's comparison has too little noise",
        "look spends its part",
        "mechanisms.auto:SizeLook._compare",
        "scale *= max(",
        "scale *= min(",
    ),
    _slip(
        "each number of the look spends all of its ε",
        "look spends its part",
        "mechanisms.auto:SizeLook.choose",
        "(self.epsilon * share)",
        "self.epsilon",
    ),
    _slip(
        "the look's ε is not subtracted",
        "a look and a release",
        "mechanisms.auto:_look",
        "(epsilon - spent) *",
        "epsilon *",
    ),
    _slip(
        "a path's guarantee forgets the look",
        "a look and a release",
        "mechanisms.auto:PathGuarantee.exact_delta",
        "- self.look",
        "",
    ),
    _slip(
        "the guarantee is that of the best path",
        "a look and a release",
        "mechanisms.auto:LookGuarantee.delta",
        "return max(",
        "return min(",
    ),
]

_COUNTS: Final = [
    _slip(
        "counts with σ × 0.9",
        "noise of counts",
        "mechanisms.counting:Counting.deviation",
        "return rounded_up(",
        "return 0.9 * rounded_up(",
    ),
    _slip(
        "counts with σ × 0.9 where noise is drawn",
        "count noise",
        "mechanisms.discrete:with_noise",
        "measurement(sigma)",
        "measurement(0.9 * sigma)",
    ),
    _slip(
        "the sensitivity of counts is 1",
        "noise of counts",
        "mechanisms.counting:Counting.deviation",
        "min(self.max_items, keys)",
        "1",
    ),
    _slip(
        "the sensitivity of counts is that of few keys",
        "noise of counts",
        "mechanisms.counting:Counting.deviation",
        "min(self.max_items, keys)",
        "min(self.max_items, keys // 2)",
    ),
    _slip(
        "counts without smoothing",
        "noise of counts",
        "mechanisms.counting:Counting.deviation",
        " + SMOOTHING",
        "",
    ),
    _slip(
        "the rounding of counts is charged for one count",
        "noise of counts",
        "mechanisms.counting:rounding_cost",
        "2 * max_items * 2.1",
        "2.1",
    ),
    _slip(
        "counts forget what the selection spent",
        "noise of counts",
        "mechanisms.joint:joined",
        "rounded_up(path.rho + rho)",
        "rounded_up(rho)",
    ),
    _slip(
        "half of the counts is in the bound of evidence",
        "noise of counts",
        "mechanisms.evidence:JointBound.noise",
        "np.sqrt(2 * (rho * points + more))",
        "np.sqrt(2 * (rho * points + more / 2))",
    ),
    _slip(
        "counts after release rules without their order",
        "noise of counts",
        "mechanisms.release_rule:rule_delta",
        "e + rounded_up(alpha * more)",
        "e + rounded_up(more)",
    ),
    _slip(
        "counts of given keys with twice their ρ",
        "noise of counts alone",
        "mechanisms.counting:Counting.deviation",
        "norm / (2 * self.rhos[release])",
        "norm / (4 * self.rhos[release])",
    ),
    _slip(
        "counts after a look forget the look",
        "noise of counts after a look",
        "mechanisms.auto:PathGuarantee.exact_delta",
        "- self.look",
        "",
    ),
    _slip(
        "counts after coins forget that these may lie",
        "noise of counts",
        "mechanisms.joint:CoinAndGaussian.exact_delta",
        "epsilon - self.pure",
        "epsilon",
    ),
    _slip(
        "a user counts for all keys in the reference engine",
        "counts of users",
        "engines.reference:ReferenceContributions.count",
        "held[:max_items]",
        "held",
    ),
    _slip(
        "a user counts for one key more in the memory engine",
        "counts of users",
        "engines.memory.counting:KeyCounter.add",
        "ones = np.ones(min(self.max_items,",
        "ones = np.ones(min(self.max_items + 1,",
    ),
    _slip(
        "all counts have the same noise",
        "count noise",
        "mechanisms.discrete:with_noise",
        "places = np.arange(len(counts), dtype=np.uint64)",
        "places = np.zeros(len(counts), dtype=np.uint64)",
    ),
]

_OUTPUTS: Final = [
    _slip(
        "the output is in the order of first appearance",
        "sorted output",
        "sorting:sorted_items",
        "column.take(order)",
        "column",
    ),
    _slip(
        "a count in the certificate",
        "certificate without counts",
        "select:public_facts",
        '"nulls": source.nulls,',
        '"nulls": sum(batch.num_rows for batch in source.batches()),',
    ),
    _slip(
        "a count of rows in the certificate of counts",
        "certificate without counts",
        "count:count_users",
        "count=counted)",
        'count={**counted, "max_items": len(data)})',
    ),
    _slip(
        "a category that was not released",
        "categories are released items",
        "sources.pandas_frames:_categories",
        "released = released.sort_values()",
        "released = dtype.categories",
    ),
    _slip(
        "codes of categories in the order of the data",
        "categories are released items",
        "sources.pandas_frames:_categories",
        "released = released.sort_values()",
        "released = dtype.categories[dtype.categories.isin(released)][::-1]",
    ),
    _slip(
        "a dictionary in the order of the data",
        "sorted output",
        "sorting:_typed",
        "entries = entries.take(",
        "entries = entries if True else entries.take(",
    ),
    _slip(
        "CSV types are inferred from rows",
        "types are not inferred",
        "sources.plain_rows:_strings",
        "return pa.StringArray.from_buffers(rows, pa.py_buffer(ends), own, pa.py_buffer(valid))",
        "found = pa.StringArray.from_buffers(rows, pa.py_buffer(ends), own, pa.py_buffer(valid))\n"
        "    digits = all(value.isdigit() for value in found.to_pylist())\n"
        "    return found.cast(pa.int64()).cast(pa.string()) if digits else found",
    ),
]

_RELEASES: Final = [
    _slip(
        "mad2r promises for its second round alone, and shows both",
        "mad2r releases",
        "mechanisms.mad:Mad2R.design",
        "for r in (first, second))",
        "for r in (second,))",
    ),
    _slip(
        "mad2r's first σ is 10 % too small where verdicts fall",
        "mad2r releases",
        "mechanisms.mad:decide_and_note",
        "sigma * gaussian",
        "0.9 * sigma * gaussian",
    ),
    _slip(
        "mad2r's second σ is 20 % too small",
        "mad2r releases",
        "mechanisms.mad:AdaptiveRound.run",
        '"sigma": self.sigma,',
        '"sigma": self.sigma * (1 if self.drop is not None else 0.8),',
    ),
    _slip(
        "mad2r's biases have no norm",
        "mad2r releases",
        "mechanisms.adaptive:Spread._own",
        "/ root[users] * _SHAVE",
        "",
    ),
    _slip(
        "mad2r releases what a cut left out, of a user's own",
        "mad2r cut sets",
        "mechanisms.mad:decide_and_note",
        "return noisy, (weights > 0) & (noisy >= threshold)",
        "return noisy, (noisy >= threshold)",
    ),
]

SLIPS: Final = [
    *_NOISE, *_THRESHOLDS, *_BUDGETS, *_WEIGHTS, *_TURNS, *_KEYS, *_LOOK, *_COUNTS, *_OUTPUTS,
    *_RELEASES,
]  # fmt: skip
"""All of them."""
