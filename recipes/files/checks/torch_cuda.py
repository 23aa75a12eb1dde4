"""Does torch compute rightly on every GPU, and give the memory back?

--gpu="RTX 4090"   model that each GPU must be, by words of its name
--count=2          how many GPUs there must be
"""

import re

from diagnosis import explain, load_torch, start_cuda
from result import main

# Relative errors of a product of two 1024 x 1024 matrices of uniform numbers against
# float64, in units of the largest entry. float32 without TF32 stays near 1e-6; half
# types carry 11 and 8 bits. Each bound is some four times what is usual.
TOLERANCE = {"float32": 5e-6, "float16": 2e-3, "bfloat16": 1.6e-2}
SIDE = 1024
WRONG = ["run it again; if it stays, the GPU or its memory is at fault"], "the GPU computes wrongly"


def serves(capability, archs):
    """Whether a torch built for archs (sm_86, compute_90) runs on capability (8, 9)."""
    for arch in archs:
        kind, _, digits = arch.partition("_")
        if not digits.isdigit() or len(digits) < 2:
            continue  # sm_90a: for one architecture's special instructions only
        major, minor = int(digits[:-1]), int(digits[-1])
        if kind == "sm" and major == capability[0] and minor <= capability[1]:
            return True  # machine code runs on the same major version
        if kind == "compute" and (major, minor) <= tuple(capability):
            return True  # PTX runs on everything later
    return False


def products(torch, device, capability, report):
    """Multiply on the device and compare with float64 on the processor."""
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    a, b = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE)
    errors = {}
    for name, most in TOLERANCE.items():
        if name == "bfloat16" and capability[0] < 8:
            continue  # older ones emulate it, if at all
        kind = getattr(torch, name)
        low_a, low_b = a.to(kind), b.to(kind)
        want = low_a.double() @ low_b.double()
        got = (low_a.to(device) @ low_b.to(device)).cpu().double()
        error = float((got - want).abs().max() / want.abs().max())
        errors[name] = error
        if not error <= most:  # nan is no number that is less
            report.problem(f"{device}: a product in {name} is off by {error:.1e}, more than {most:.1e}", *WRONG)
    return errors


def convolution(torch, device, report):
    """A convolution by cuDNN against the processor."""
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(0)
    net, x = torch.nn.Conv2d(3, 8, 3), torch.rand(4, 3, 32, 32)
    with torch.no_grad():
        want, got = net(x), net.to(device)(x.to(device)).cpu()
    if not torch.allclose(got, want, rtol=1e-4, atol=1e-4):
        report.problem(f"{device}: a convolution is off by {float((got - want).abs().max()):.1e}", *WRONG)


def cudnn(torch, report):
    if not torch.backends.cudnn.is_available():
        report.problem("torch finds no cuDNN", "build the image again from its lock")
        return None
    compiled = getattr(torch._C, "_cudnn", None)
    built = compiled.getCompileVersion() if compiled and hasattr(compiled, "getCompileVersion") else None
    try:
        loaded = torch.backends.cudnn.version()
    except Exception as err:
        explain(report, "torch.backends.cudnn", err)
        return None
    if isinstance(built, tuple):
        built = built[0] * (1000 if built[0] < 9 else 10000) + built[1] * 100 + built[2]
    if built and built // 1000 != loaded // 1000:
        report.problem(f"cuDNN {loaded} is loaded, and torch was built with {built}",
                       "take the system's cuDNN out of the image and out of LD_LIBRARY_PATH", "two cuDNNs are mixed")
    return loaded


def device_check(torch, index, archs, report):
    device = f"cuda:{index}"
    out = {"index": index, "name": torch.cuda.get_device_name(index), "capability": list(torch.cuda.get_device_capability(index))}
    if not serves(out["capability"], archs):
        explain(report, f"GPU {index} ({out['name']}, {out['capability'][0]}.{out['capability'][1]})",
                "no kernel image is available: torch is built for " + " ".join(archs), 209)
    try:
        if float((torch.arange(1000, device=device) * 2).sum()) != 999000:
            report.problem(f"{device}: a sum is wrong", *WRONG)
        out["errors"] = products(torch, device, out["capability"], report)
        convolution(torch, device, report)
        torch.cuda.synchronize(index)
    except Exception as err:
        explain(report, device, err)
        return out
    torch.cuda.empty_cache()
    if torch.cuda.memory_allocated(index) or torch.cuda.memory_reserved(index):
        held = torch.cuda.memory_allocated(index)
        # cuBLAS keeps a workspace through torch's allocator, at most 64 MiB.
        if held > 64 << 20:
            report.problem(f"{device}: {held} bytes are not given back", "see what holds on to memory: torch.cuda.memory_summary()",
                           "torch.cuda.empty_cache() leaves them allocated")
    return out


def check(options, report):
    torch = load_torch(report)
    start_cuda(torch, report)
    archs = torch.cuda.get_arch_list()
    count = torch.cuda.device_count()
    if options["count"] is not None and count != options["count"]:
        report.problem(f"torch sees {count} GPUs, not {options['count']}", "look at CUDA_VISIBLE_DEVICES and at what the container was given")
    devices = [device_check(torch, index, archs, report) for index in range(count)]
    for device in devices:
        has = re.findall(r"[a-z0-9]+", device["name"].lower())
        if not all(word in has for word in re.findall(r"[a-z0-9]+", (options["gpu"] or "").lower())):
            report.problem(f"GPU {device['index']} is {device['name']}, not {options['gpu']}")
    report.facts.update(torch=torch.__version__, cuda=torch.version.cuda, cudnn=cudnn(torch, report), archs=archs, devices=devices)
    report.summary = f"torch {torch.__version__} computes rightly on {count} x {', '.join(sorted({d['name'] for d in devices}))}"


if __name__ == "__main__":
    main(check, {"gpu": str, "count": int})
