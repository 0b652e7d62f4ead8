"""What the product costs, beside the least that the same work could cost, in turns in one run."""

import os

# The search of the core runs on one thread, so the exact scan that stands beside it does too. It is read when
# numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
