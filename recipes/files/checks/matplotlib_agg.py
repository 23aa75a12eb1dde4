"""Does matplotlib draw without a display, for a user without a home?

As root the work is done by a child that is user 65534.
"""

import os
import sys

from result import Stop, main, run

AGAIN = "build the image again from its lock"

DRAW = r"""
import warnings
warnings.simplefilter("error")
for kind in (DeprecationWarning, PendingDeprecationWarning):
    warnings.simplefilter("ignore", kind)  # it is not the image's
import io, sys
import matplotlib
asked = dict.__getitem__(matplotlib.rcParams, "backend")  # without a display a new matplotlib takes Agg in its place
if isinstance(asked, str):
    print("asked", asked)
import matplotlib.pyplot as plt
fig = plt.figure()
print("backend", matplotlib.get_backend())
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
    drawn = run([sys.executable, "-c", DRAW], env=env, cwd="/", preexec_fn=drop)
    said = dict(line.split(" ", 1) for line in drawn.stdout.splitlines() if " " in line)
    print(drawn.stdout, drawn.stderr, file=sys.stderr)
    backend = said.get("asked", said.get("backend", "agg"))
    if backend.lower() != "agg":
        report.problem(f"the backend is {backend}, not agg", "write `backend: agg` into the file that MATPLOTLIBRC names",
                       "a backend with windows fails where there is no display")
        raise Stop
    complaint = drawn.stderr.strip().splitlines()
    if drawn.returncode != 0:
        why = complaint[-1] if complaint else f"the program ended with code {drawn.returncode}"
        report.problem(why, "add the recipe matplotlib-agg" if "No module named 'matplotlib'" in why else AGAIN)
        raise Stop
    if complaint:
        report.problem("it complains: " + complaint[0], "give MPLCONFIGDIR a directory that every user may write to")
    if not said.get("png", "").endswith("True"):
        report.problem("what was saved is no PNG", AGAIN)
    report.summary = f"matplotlib {said.get('version')}, {said.get('backend')}"


if __name__ == "__main__":
    main(check)
