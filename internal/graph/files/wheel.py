"""Install wheels into /opt/venv below an output directory, the same bytes each time.

usage: wheel.py OUT EPOCH WHEEL...

Runs offline with pypa/installer on sys.path. Final paths are written inside, so
the output can be merged over any root that has the same Python.
"""

import os
import py_compile
import sys
import sysconfig

from installer import install
from installer.destinations import SchemeDictionaryDestination
from installer.records import RecordEntry
from installer.sources import WheelFile

VENV = "/opt/venv"


class Venv(SchemeDictionaryDestination):
    """Writes below destdir and adds hash-based byte code to RECORD."""

    def finalize_installation(self, scheme, record_file_path, records):
        records = list(records)
        modules = [r.path for s, r in records if s == scheme and r.path.endswith(".py")]
        compiled = []
        for module in modules:
            final = os.path.join(self.scheme_dict[scheme], module)
            source = os.path.join(self.destdir, final.lstrip("/"))
            cache = compile_module(source, final)
            if cache:
                name = os.path.join(os.path.dirname(module), "__pycache__", os.path.basename(cache))
                compiled.append((scheme, RecordEntry(name, None, None)))
        return super().finalize_installation(scheme, record_file_path, records + compiled)


def compile_module(source, final):
    """Byte-compile one file; a module meant for another Python is left as it is."""
    cache = os.path.join(
        os.path.dirname(source),
        "__pycache__",
        os.path.basename(source)[:-3] + "." + sys.implementation.cache_tag + ".pyc",
    )
    try:
        # Unchecked: the loader need not stat the source, and no time is inside.
        py_compile.compile(
            source, cache, final, doraise=True, quiet=2,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
    except (py_compile.PyCompileError, ValueError, RecursionError):
        return None
    return cache


def scheme(distribution):
    """Where the environment's own Python looks for each kind of file."""
    # Before Python 3.11 an environment had the layout of a plain installation.
    layout = "venv" if "venv" in sysconfig.get_scheme_names() else "posix_prefix"
    paths = sysconfig.get_paths(layout, {"base": VENV, "platbase": VENV})
    return {
        "purelib": paths["purelib"],
        "platlib": paths["platlib"],
        "scripts": paths["scripts"],
        "data": VENV,
        "headers": os.path.join(VENV, "include", "site", f"python{sys.version_info[0]}.{sys.version_info[1]}", distribution),
    }


def settle(out, epoch):
    """Give every file one time."""
    for root, dirs, files in os.walk(out):
        for name in dirs + files:
            os.utime(os.path.join(root, name), (epoch, epoch), follow_symlinks=False)
    os.utime(out, (epoch, epoch))


def main(out, epoch, *wheels):
    os.umask(0o022)
    for path in sorted(wheels):
        with WheelFile.open(path) as source:
            destination = Venv(
                scheme_dict=scheme(source.distribution),
                interpreter=VENV + "/bin/python",
                script_kind="posix",
                bytecode_optimization_levels=(),
                destdir=out,
            )
            install(source, destination, additional_metadata={"INSTALLER": b"imgforge\n"})
    settle(out, int(epoch))


if __name__ == "__main__":
    main(*sys.argv[1:])
