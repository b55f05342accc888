"""The audit on a cluster: black boxes, as workers make the verdicts.

A sound build is reported by chance with a probability of at most 1e-8; a miss of what is broken is
less likely still: about 1 in 4 trials shows it, of which there are 1000.
"""

from typing import Any

import pytest
from tests.power.loud import Loud

from dp_sips import Matching
from dp_sips.auditing.neighbours import Neighbours
from dp_sips.auditing.sampling import Runner, shown
from dp_sips.auditing.statistics import FALSE_ALARM
from dp_sips.auditing.targets import promise, targets
from dp_sips.engines.spark import SparkEngine

OWN = Neighbours((), (0,))
ROWS = 1000


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(("mechanism", "sound"), [(Matching(), True), (Loud(), False)])
def test_items_of_ones_own(mechanism: Any, *, sound: bool) -> None:
    engine = SparkEngine()
    (target,) = targets(mechanism, engine, epsilon=3.0, delta=0.05, max_items=1)
    (found,) = shown(Runner(target, engine, ROWS), OWN, [3.0], FALSE_ALARM / 4)
    assert found.trials == ROWS
    assert (found.delta <= promise(target.plan, 3.0)) == sound
