"""Does torch.compile make a kernel that computes rightly?

--floor=525.60.13   the oldest driver it works on: on an older one the check fails, and
                    says so before triton does in its own words
"""

import shutil

from diagnosis import explain, version
from result import Stop, main


def driver():
    try:
        import pynvml
        pynvml.nvmlInit()
        found = pynvml.nvmlSystemGetDriverVersion()
        return found.decode() if isinstance(found, bytes) else found
    except Exception:
        return ""


def check(options, report):
    try:
        import torch
    except Exception as err:
        report.problem(f"import torch: {type(err).__name__}: {err}".splitlines()[0], "add the recipe torch")
        raise Stop from err
    if not shutil.which("cc") and not shutil.which("gcc"):
        report.problem("there is no C compiler, which triton needs", "add the recipe devel")
        raise Stop
    has = driver()
    if options["floor"] and has and version(has) < version(options["floor"]):
        report.problem(f"torch.compile of this build needs driver {options['floor']}, and {has} is here",
                       ["upgrade the host's driver", "or point TRITON_PTXAS_PATH to a ptxas of the image's CUDA"])
        raise Stop
    try:
        torch.cuda.init()
        x = torch.rand(4096, device="cuda")
        want = torch.sin(x) + torch.cos(x)
        got = torch.compile(lambda t: torch.sin(t) + torch.cos(t))(x)
        torch.cuda.synchronize()
    except Exception as err:
        explain(report, "torch.compile", err)
        raise Stop from err
    if not torch.allclose(got, want, rtol=1e-5, atol=1e-5):
        report.problem(f"a compiled kernel is off by {float((got - want).abs().max()):.1e}")
    report.summary = f"torch {torch.__version__} compiles"
    report.facts.update(torch=torch.__version__, driver=has)


if __name__ == "__main__":
    main(check, {"floor": ""})
