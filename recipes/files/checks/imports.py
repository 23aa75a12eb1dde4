"""Is every requested distribution installed, and can it be imported?

--distributions=a,b,c
"""

import importlib
import re
import sys
from importlib import metadata

from result import main, run, words

# Tools of the environment, whose modules are no one's to import, and those that refuse
# to be imported outside of what they are for.
COMMANDS_ONLY = {"wheel", "ninja", "cmake"}
AGAIN = "build the image again from its lock"


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
    done = "imports: imported " + module
    said = run([sys.executable, "-c", f"import {module}; print({done!r})"], cwd="/")
    print(said.stdout, said.stderr, file=sys.stderr)
    return said.returncode == 0 and done in said.stdout.splitlines()


def failure(module, dist):
    """Why a module cannot be imported; None when it can."""
    print("import", module, file=sys.stderr, flush=True)  # the last words of one that ends the program
    try:
        got = importlib.import_module(module)
    except BaseException as err:  # a module may even exit
        return None if alone(module) else f"{type(err).__name__}: {err}"  # or what was imported before was in its way
    home = module + "/__init__.py"
    if getattr(got, "__file__", None) is None and home in map(str, dist.files or []):
        return home + " is not there"
    return None


def remedy(why):
    """(what to do, what it means) of a failed import."""
    library = re.search(r"(lib[\w.+-]+\.so[.\d]*): cannot open shared object file", why)
    if library:
        return f"add the package that has {library.group(1)} to the `debs` of the recipe that lists it", "no package of the distribution brings this library"
    return AGAIN, ""


def check(options, report):
    names = options["distributions"] or []
    if not names:
        report.problem("no distribution is named", "give --distributions=a,b,c")
    tried = []
    for name in names:
        try:
            dist = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            report.problem(f"{name} is not installed", AGAIN)
            continue
        found = modules(dist)
        if dist.files is None:
            report.problem(f"{name} {dist.version} does not say what its files are: its RECORD is missing", AGAIN)
        if re.sub(r"[-_.]+", "-", name).lower() in COMMANDS_ONLY:
            continue
        for module in found:
            why = failure(module, dist)
            if why is None:
                tried.append(module)
            else:
                report.problem(f"import {module} ({name} {dist.version}): {why}".splitlines()[0], *remedy(why))
    report.summary = f"{len(names)} distributions, {len(tried)} modules imported"
    report.facts["modules"] = tried


if __name__ == "__main__":
    main(check, {"distributions": words})
