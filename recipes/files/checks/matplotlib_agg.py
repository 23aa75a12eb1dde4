"""Does matplotlib draw without a display, for a user without a home?

As root the work is done by a child that is user 65534.
"""

import os
import subprocess
import sys

from result import Stop, main

DRAW = r"""
import warnings
warnings.simplefilter("error")
import io, sys
import matplotlib
import matplotlib.pyplot as plt
print("backend", matplotlib.get_backend())
fig = plt.figure()
plt.plot([1, 3, 2])
plt.title("smoke")
out = io.BytesIO()
fig.savefig(out, format="png")
data = out.getvalue()
print("png", len(data), data[:8] == b"\x89PNG\r\n\x1a\n")
print("version", matplotlib.__version__)
"""


def nobody():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


def check(options, report):
    env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    env["HOME"] = "/nonexistent"
    if env.get("MPLBACKEND"):
        report.problem(f"MPLBACKEND={env['MPLBACKEND']} is set: notebooks lose their inline plots",
                       "choose the backend in a matplotlibrc that MATPLOTLIBRC names")
    drop = nobody if os.getuid() == 0 else None
    run = subprocess.run([sys.executable, "-c", DRAW], env=env, cwd="/", capture_output=True, text=True, preexec_fn=drop, check=False)
    said = dict(line.split(" ", 1) for line in run.stdout.splitlines() if " " in line)
    print(run.stdout, run.stderr, file=sys.stderr)
    if said.get("backend", "agg").lower() != "agg":
        report.problem(f"the backend is {said['backend']}, not agg", "write `backend: agg` into the file that MATPLOTLIBRC names",
                       "a backend with windows fails where there is no display")
    if run.returncode != 0:
        lines = run.stderr.strip().splitlines()
        report.problem(lines[-1] if lines else f"the program ended with code {run.returncode}")
        raise Stop
    if run.stderr.strip():
        report.problem("it complains: " + run.stderr.strip().splitlines()[0], "give MPLCONFIGDIR a directory that every user may write to")
    if not said.get("png", "").endswith("True"):
        report.problem("what was saved is no PNG")
    report.summary = f"matplotlib {said.get('version')}, {said.get('backend')}"


if __name__ == "__main__":
    main(check)
