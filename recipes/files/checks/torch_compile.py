"""Does torch.compile make a kernel that computes rightly?

--floor=525.60.13   the oldest driver it works on: on an older one the check fails, and
                    says so before triton does in its own words
"""

import os
import shutil

from diagnosis import driver, explain, load_torch, start_cuda, version
from result import Stop, main, release

# With these torch.compile leaves a function as it is, or goes back to it in silence.
OFF = ("TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE", "TORCHDYNAMO_SUPPRESS_ERRORS")


def check(options, report):
    for name in OFF:
        if os.environ.get(name, "0") not in ("", "0"):
            report.problem(f"{name}={os.environ[name]} is set", "take it out of the image's environment", "torch.compile compiles nothing, and says nothing")
            raise Stop
    torch = load_torch(report)
    if not shutil.which("cc") and not shutil.which("gcc"):
        report.problem("there is no C compiler, which triton needs", "add the recipe devel")
        raise Stop
    has = driver()
    if options["floor"] and has and version(has) < version(options["floor"]):
        report.problem(f"torch.compile of this build needs driver {options['floor']}, and {has} is here",
                       ["upgrade the host's driver", "or point TRITON_PTXAS_PATH to a ptxas of the image's CUDA"])
        raise Stop
    start_cuda(torch, report)
    try:
        x = torch.rand(4096, device="cuda")
        want = torch.sin(x) + torch.cos(x)
        got = torch.compile(lambda t: torch.sin(t) + torch.cos(t))(x)
        torch.cuda.synchronize()
    except Exception as err:
        explain(report, "torch.compile", err)
        raise Stop from err
    if not torch.allclose(got, want, rtol=1e-5, atol=1e-5):
        report.problem(f"a compiled kernel is off by {float((got - want).abs().max()):.1e}",
                       "run it again with an empty TORCHINDUCTOR_CACHE_DIR; if it stays, the GPU or its memory is at fault", "the kernel computes wrongly")
    if not torch._dynamo.utils.counters["frames"]["ok"]:
        report.problem("torch.compile compiled nothing", "see why: TORCH_LOGS=dynamo", "the function ran as it was written")
    report.summary = f"torch {torch.__version__} compiles"
    report.facts.update(torch=torch.__version__, driver=has)


if __name__ == "__main__":
    main(check, {"floor": release})
