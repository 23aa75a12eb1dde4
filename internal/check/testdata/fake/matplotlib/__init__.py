"""A stand-in for matplotlib."""

import os

from fakes import told

__version__ = "3.9.0"
rcParams = {"backend": os.environ.get("MPLBACKEND") or told("backend", "agg")}


def get_backend():
    backend = rcParams["backend"]
    return "agg" if told("falls back") and "MPLBACKEND" not in os.environ else backend
