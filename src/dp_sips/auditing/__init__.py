"""audit: does this build keep its promises, and how tight are they?

| file | what it does |
|---|---|
| `neighbours.py` | families of neighbours that are hard to protect |
| `worlds.py` | thousands of them in one data set |
| `probing.py` | the chance of a verdict, from the function that makes it |
| `enumeration.py` | exact: every branch of every verdict, on the engine itself |
| `integration.py` | exact: evidence that adds up over rounds |
| `looking.py` | exact: the choice of a private look |
| `divergence.py` | the true δ(ε) between two distributions |
| `sampling.py` | black box: the engine as anyone runs it |
| `statistics.py` | bounds on δ from counts, with a stated false-alarm rate |
| `targets.py` | what is audited, and what it promises |
| `rows.py`, `page.py` | the table, JSON, and an HTML page |
| `run.py` | all of it together |
"""

from dp_sips.auditing.rows import Audit, Row
from dp_sips.auditing.run import audit

__all__ = ["Audit", "Row", "audit"]
