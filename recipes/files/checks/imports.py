"""Is every requested distribution installed, and can it be imported?

--distributions=a,b,c
"""

import importlib
import re
import subprocess
import sys
from importlib import metadata

from result import main, words

# Tools of the environment, whose modules are no one's to import, and those that refuse
# to be imported outside of what they are for.
COMMANDS_ONLY = {"wheel", "ninja", "cmake"}


def modules(dist):
    """The top-level modules of a distribution."""
    text = dist.read_text("top_level.txt")
    names = set((text or "").split())
    if not names:
        for path in dist.files or []:
            first = path.parts[0]
            if first.endswith((".dist-info", ".data", "__pycache__")) or first == "..":
                continue
            if len(path.parts) == 1 and path.suffix in (".py", ".so"):
                names.add(first.split(".")[0])
            elif len(path.parts) > 1 and path.suffix in (".py", ".so"):
                names.add(first)
    return sorted(n for n in names if n.isidentifier() and not n.startswith("_"))


def alone(module):
    """Whether a module can be imported by a program that imports nothing else."""
    return subprocess.run([sys.executable, "-c", "import " + module], stdout=sys.stderr, check=False).returncode == 0


def check(options, report):
    names = words(options["distributions"])
    if not names:
        report.problem("no distribution is named", "give --distributions=a,b,c")
    tried = []
    for name in names:
        try:
            dist = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            report.problem(f"{name} is not installed", "build the image again from its lock")
            continue
        found = modules(dist)
        if re.sub(r"[-_.]+", "-", name).lower() in COMMANDS_ONLY:
            continue
        for module in found:
            try:
                importlib.import_module(module)
                tried.append(module)
            except BaseException as err:  # a module may even exit
                if isinstance(err, KeyboardInterrupt):
                    raise
                if alone(module):  # what was imported before was in its way
                    tried.append(module)
                    continue
                report.problem(f"import {module} ({name} {dist.version}): {type(err).__name__}: {err}".splitlines()[0])
    report.summary = f"{len(names)} distributions, {len(tried)} modules imported"
    report.facts["modules"] = tried


if __name__ == "__main__":
    main(check, {"distributions": ""})
