"""Is torch the one that was asked for, and does it share arrays with NumPy?

--torch=2.4.1 --cuda=12.1

A torch built for NumPy 1 only warns when it meets NumPy 2, and fails at from_numpy
(jupyter/notebook#7522); so a warning is a failure here.
"""

import contextlib
import io
import re
import warnings

from result import Stop, main

AGAIN = "build the image again from its lock"
# What torch and NumPy say when they were not built for each other.
MISFIT = re.compile(r"Failed to initialize NumPy|_ARRAY_API|compiled using NumPy|numpy\.core\.multiarray failed")


def quiet_import(report):
    """Import numpy and torch; whatever they complain about is a problem."""
    said = io.StringIO()
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stderr(said):
        warnings.simplefilter("always")
        try:
            import numpy
            import torch
        except Exception as err:
            report.problem(f"{type(err).__name__}: {err}".splitlines()[0], AGAIN)
            raise Stop from err
        try:
            torch.zeros(1).numpy()
        except Exception as err:
            misfit(report, f"torch.zeros(1).numpy(): {err}")
            raise Stop from err
    for text in [str(w.message) for w in caught] + said.getvalue().splitlines():
        if MISFIT.search(text):
            misfit(report, text)
            break  # it is told several times
    return numpy, torch


def shares(numpy, torch, report):
    """A tensor of an array has its numbers, also those that are written later."""
    array = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
    try:
        tensor = torch.from_numpy(array)
    except Exception as err:
        misfit(report, f"torch.from_numpy: {type(err).__name__}: {err}")
        return
    array[0, 0] = 7
    if float(tensor[0, 0]) != 7 or not numpy.array_equal((tensor @ tensor.T).numpy(), array @ array.T):
        report.problem("torch.from_numpy gives other numbers than NumPy has", AGAIN)


def misfit(report, text):
    report.problem(text.splitlines()[0], "limit numpy<2 for this torch: imgforge does so for torch up to 2.2",
                   "torch was built for NumPy 1, and NumPy 2 is installed")


def check(options, report):
    numpy, torch = quiet_import(report)
    release = torch.__version__.split("+")[0]
    if options["torch"] and release != options["torch"]:
        report.problem(f"torch is {torch.__version__}, not {options['torch']}", AGAIN)
    if options["cuda"] and torch.version.cuda != options["cuda"]:
        report.problem(f"torch is built for CUDA {torch.version.cuda or 'none (CPU only)'}, not {options['cuda']}",
                       "an index gave another build of it: lock again")
    if not report.problems:
        shares(numpy, torch, report)
    report.summary = f"torch {torch.__version__}, NumPy {numpy.__version__}"
    report.facts.update(torch=torch.__version__, cuda=torch.version.cuda, numpy=numpy.__version__)


if __name__ == "__main__":
    main(check, {"torch": str, "cuda": str})
