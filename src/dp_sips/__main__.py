"""`python -m dp_sips` is `dp-sips`."""

import sys

from dp_sips.cli import main

sys.exit(main())
