"""Does a C extension for this very Python compile and load?"""

import os
import shlex
import shutil
import sys
import sysconfig
import tempfile

from result import Stop, main, run

DEVEL = "add the recipe devel: a compiler, the headers of libc and those of this very Python"

SOURCE = r"""
#include <Python.h>
static PyObject *answer(PyObject *self, PyObject *args) { return PyLong_FromLong(42); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, 0}, {0, 0, 0, 0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "smoke", 0, -1, methods};
PyMODINIT_FUNC PyInit_smoke(void) { return PyModule_Create(&module); }
"""


def check(options, report):
    compiler = shlex.split(os.environ.get("CC", "")) or [shutil.which("cc") or shutil.which("gcc")]
    if not compiler[0]:
        report.problem("there is no C compiler", DEVEL)
        raise Stop
    if not shutil.which(compiler[0]):
        report.problem(f"CC={os.environ['CC']}, and there is no such program", "take CC out of the image's environment, or add the compiler")
        raise Stop
    header = os.path.join(sysconfig.get_path("include"), "Python.h")
    if not os.path.exists(header):
        report.problem(f"{header} is missing", f"add python{sys.version_info[0]}.{sys.version_info[1]}-dev, as the recipe devel does")
        raise Stop
    with tempfile.TemporaryDirectory() as dir:
        with open(os.path.join(dir, "smoke.c"), "w") as f:
            f.write(SOURCE)
        out = os.path.join(dir, "smoke" + sysconfig.get_config_var("EXT_SUFFIX"))
        made = run([*compiler, "-shared", "-fPIC", "-I" + os.path.dirname(header), "-o", out, os.path.join(dir, "smoke.c")])
        if made.returncode != 0:
            lines = made.stderr.strip().splitlines() or ["no message"]
            report.problem("it does not compile: " + next((line for line in lines if "error" in line), lines[0]), DEVEL)
            raise Stop
        sys.path.insert(0, dir)
        try:
            import smoke
        except ImportError as err:
            report.problem(f"the extension cannot be loaded: {type(err).__name__}: {err}", DEVEL)
            raise Stop from err
        if smoke.answer() != 42:
            report.problem("the extension gives a wrong answer", DEVEL)
    first = run([*compiler, "--version"]).stdout.splitlines()
    report.summary = (first or compiler)[0]


if __name__ == "__main__":
    main(check)
