"""Does a notebook's cell run with the Python of the shell, and plot inline?"""

import json
import shutil
import sys

from result import Stop, main

AGAIN = "build the image again from its lock"
HERE = "register the kernel with the environment's own Python: see JUPYTER_PATH"
CELL = r"""
import json, sys
out = {"python": sys.prefix, "torch": None, "backend": None}
try:
    import torch
    out["torch"] = torch.__version__
except ModuleNotFoundError:
    pass
try:
    import matplotlib.pyplot
    import matplotlib
    out["backend"] = matplotlib.get_backend()
except ModuleNotFoundError:
    pass
print("RESULT" + json.dumps(out))
"""


def run(code, seconds, report):
    """Start the kernel python3, run a cell in it and return what it printed."""
    from jupyter_client.manager import start_new_kernel

    try:
        manager, client = start_new_kernel(kernel_name="python3", startup_timeout=seconds)
    except Exception as err:
        report.problem(f"{type(err).__name__}: {err}".splitlines()[0], ["add the recipe jupyter, which brings ipykernel and registers it", "see where kernels are looked for: JUPYTER_PATH"],
                       "the kernel python3 does not start")
        raise Stop from err
    printed, errors = [], []

    def note(message):
        content = message["content"]
        if message["msg_type"] == "stream":
            printed.append(content["text"])
        elif message["msg_type"] == "error":
            errors.append(f"{content['ename']}: {content['evalue']}")

    try:
        client.execute_interactive(code, timeout=seconds, output_hook=note)
    except Exception as err:
        report.problem(f"{type(err).__name__}: {err}".splitlines()[0], AGAIN, "the kernel starts and answers no cell")
        raise Stop from err
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return "".join(printed), errors


def shell_torch():
    try:
        import torch
    except ModuleNotFoundError:
        return None
    return torch.__version__


def check(options, report):
    try:
        import jupyter_client
    except ImportError as err:
        report.problem(f"{type(err).__name__}: {err}", "add the recipe jupyter")
        raise Stop from err
    if not shutil.which("jupyter-lab"):
        report.problem("there is no jupyter-lab on PATH", "add the recipe jupyter")
    text, errors = run(CELL, 120, report)
    for err in errors:
        report.problem(f"the cell fails: {err}", AGAIN)
    found = [line[6:] for line in text.splitlines() if line.startswith("RESULT")]
    if not found and not errors:
        report.problem("the cell printed no result: " + (text.strip().splitlines() or ["nothing"])[-1], AGAIN)
    if not found:
        raise Stop
    got = json.loads(found[0])
    if got["python"] != sys.prefix:
        report.problem(f"the kernel runs the Python of {got['python']}, the shell that of {sys.prefix}",
                       HERE)
    mine = shell_torch()
    if got["torch"] != mine:
        report.problem(f"the kernel has torch {got['torch']}, the shell {mine}", HERE)
    if got["backend"] and "inline" not in got["backend"]:
        report.problem(f"matplotlib draws with {got['backend']} in a notebook, not inline", "do not set MPLBACKEND in the image")
    report.summary = f"kernel python3, torch {got['torch'] or 'none'}, jupyter_client {jupyter_client.__version__}"


if __name__ == "__main__":
    main(check)
