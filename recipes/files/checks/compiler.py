"""Does a C extension for this very Python compile and load?"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

from result import Stop, main

SOURCE = r"""
#include <Python.h>
static PyObject *answer(PyObject *self, PyObject *args) { return PyLong_FromLong(42); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, 0}, {0, 0, 0, 0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "smoke", 0, -1, methods};
PyMODINIT_FUNC PyInit_smoke(void) { return PyModule_Create(&module); }
"""


def check(options, report):
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        report.problem("there is no C compiler", "add the recipe devel")
        raise Stop
    header = os.path.join(sysconfig.get_path("include"), "Python.h")
    if not os.path.exists(header):
        report.problem(f"{header} is missing", f"add python{sys.version_info[0]}.{sys.version_info[1]}-dev: the headers of this very Python")
        raise Stop
    with tempfile.TemporaryDirectory() as dir:
        with open(os.path.join(dir, "smoke.c"), "w") as f:
            f.write(SOURCE)
        out = os.path.join(dir, "smoke" + sysconfig.get_config_var("EXT_SUFFIX"))
        run = subprocess.run([compiler, "-shared", "-fPIC", "-I" + os.path.dirname(header), "-o", out, os.path.join(dir, "smoke.c")],
                             capture_output=True, text=True, check=False)
        if run.returncode != 0:
            report.problem("it does not compile: " + (run.stderr.strip().splitlines() or ["no message"])[0])
            raise Stop
        sys.path.insert(0, dir)
        import smoke
        if smoke.answer() != 42:
            report.problem("the extension gives a wrong answer")
    first = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout.splitlines()
    report.summary = (first or [compiler])[0]


if __name__ == "__main__":
    main(check)
