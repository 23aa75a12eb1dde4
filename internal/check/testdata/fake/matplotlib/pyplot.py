import os
import sys
import warnings

from matplotlib import get_backend

from fakes import fault, told

sys.stderr.write(told("say", ""))
if told("deprecated"):
    warnings.warn(told("deprecated"), DeprecationWarning)
if told("warn"):
    warnings.warn(told("warn"))


class figure:
    def __init__(self):
        fault("figure")
        assert "DISPLAY" not in os.environ and os.environ["HOME"] == "/nonexistent" and os.getuid() != 0
        if get_backend().lower() != "agg":
            raise ImportError(f"Cannot load backend {get_backend()!r} which requires the 'tk' interactive framework, as 'headless' is currently running")

    def savefig(self, out, format):
        out.write(b"GIF89a" if told("wrong") == "png" else b"\x89PNG\r\n\x1a\n and so on")


def plot(values):
    pass


def title(text):
    pass
