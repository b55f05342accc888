"""The paper's evaluation section, from data to page; `experiments/paper.py` runs it.

Clusters, and runs that take an hour, are those of the scripts in benchmarks/.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
