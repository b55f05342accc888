"""Every table and figure of the paper's evaluation, from data to one page.

    python experiments/paper.py --data DIR --out docs/paper   # 40 minutes on two cores
    python experiments/paper.py --quick --out build/paper     # a minute, on generated data alone

Numbers are written as CSV as they come. `--only` measures some experiments again, and `--page`
none; the page is made again of all that is there. Of `largest`, only runs that its CSV lacks are
done: without any, they take hours, and 80 GB of disk.
"""

import argparse
import sys
from pathlib import Path

from datasets import default_cache, find_data
from evaluation.experiments import EXPERIMENTS, Evaluation
from evaluation.page import write_page
from evaluation.scale import FULL, quick


def main() -> None:
    """Measure, then write the page."""
    options = _options()
    failed = []
    if not options.page:
        scale = quick(options.users) if options.quick else FULL
        folder = None if options.quick else find_data(options.data)
        cache = options.cache or default_cache()
        evaluation = Evaluation(scale, folder, cache, options.out, options.remark)
        failed = evaluation.run(options.only)
    print(write_page(options.out))
    if failed:
        sys.exit(f"these experiments failed: {', '.join(failed)}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of data ($DP_SIPS_DATA)")
    parser.add_argument("--cache", type=Path, help="folder for prepared data (~/.cache/dp-sips)")
    parser.add_argument("--out", type=Path, required=True, help="folder of the page")
    parser.add_argument("--quick", action="store_true", help="generated data alone")
    parser.add_argument("--users", type=int, default=20_000, help="users of --quick")
    parser.add_argument(
        "--only", nargs="+", default=[], choices=list(EXPERIMENTS), help="measure these alone"
    )
    parser.add_argument("--remark", default="", help="what the page is to say of the machine")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    return parser.parse_args()


if __name__ == "__main__":
    main()
