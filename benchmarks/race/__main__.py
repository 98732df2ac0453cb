"""`python -m benchmarks.race`: hold the race, write JSON, CSV, tables and plots, and on request the page."""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"

from benchmarks.race.command import main  # noqa: E402

if __name__ == "__main__":
    main()
