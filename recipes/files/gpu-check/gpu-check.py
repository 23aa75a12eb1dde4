#!/opt/venv/bin/python
"""Tell whether the GPU is usable in this container, and if not, what to do.

Looks at the driver (against the floor this image was made for), at each GPU's
memory and processes, and at torch: does it see the GPU, was it built for it, is
a small product right.

exit codes: 0 usable, 1 a problem (each is explained), 2 wrong usage
"""

import argparse
import ctypes
import glob
import json
import os
import re
import subprocess
import sys

TORCH_SECONDS = 180  # a first import from a cold disk is slow; a hang is not that slow

START = [
    "docker:     docker run --gpus all ...",
    "podman:     podman run --device nvidia.com/gpu=all ...",
    "nerdctl:    nerdctl run --gpus all ...",
    "Kubernetes: resources: {limits: {nvidia.com/gpu: 1}} in the container's spec",
    "the host needs the NVIDIA driver (does nvidia-smi work there?) and the NVIDIA Container Toolkit",
]

# Known failures: CUDA's error code, what its message looks like, what it means,
# what to do. The code decides when there is one, else the first text that fits.
KNOWN = [
    (None, r"Driver/library version mismatch",
     "the host's driver was upgraded while the old kernel module stays loaded",
     ["reboot the host, or stop all GPU programs and reload the nvidia modules", "then recreate this container"]),
    (803, r"unsupported display driver ?/ ?cuda driver combination|error 803",
     "the container's libcuda does not belong to the host's kernel module",
     ["recreate the container: it still holds the libraries of an earlier driver",
      "remove any libcuda of its own: find / -xdev -name 'libcuda.so*'"]),
    (804, r"forward compatibility was attempted|error 804",
     "a cuda-compat library is loaded on a GPU that does not support it",
     ["take */compat out of LD_LIBRARY_PATH and /etc/ld.so.conf.d, run ldconfig", "this image needs no cuda-compat"]),
    (802, r"system not yet initialized|error 802",
     "the NVSwitch fabric of this machine is not up",
     ["on the host: systemctl start nvidia-fabricmanager (its version must be the driver's)"]),
    (35, r"driver version is insufficient|driver on your system is too old|CUDA error 35\b",
     "the host's driver is too old for the CUDA in this image",
     ["upgrade the host's driver, or use an image with an older CUDA"]),
    (209, r"no kernel image is available",
     "torch in this image has no code for this GPU's architecture",
     ["use an image whose torch lists it: python -c 'import torch; print(torch.cuda.get_arch_list())'"]),
    (222, r"PTX was compiled with an unsupported toolchain|unsupported toolchain",
     "code compiled at run time is newer than the driver can read",
     ["upgrade the host's driver to the one that came with the image's CUDA", "until then avoid torch.compile"]),
    (200, r"device kernel image is invalid",
     "a compiled kernel is newer than the driver: triton brings a newer ptxas than the driver supports",
     ["upgrade the host's driver", "or point TRITON_PTXAS_PATH to a ptxas of the image's CUDA"]),
    (100, r"no CUDA-capable device|No CUDA GPUs are available|might not have a CUDA gpu",
     "the driver is there, but no GPU is given to this container",
     START[:4] + ["look at NVIDIA_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES: void, none or empty hide all"]),
    (101, r"invalid device ordinal",
     "a GPU was named that is not there", ["correct CUDA_VISIBLE_DEVICES"]),
    (2, r"out of memory",
     "the GPU's memory is full", ["end what uses it (see the processes above; on the host: nvidia-smi)"]),
    (None, r"libcuda\.so.*(cannot open|not found)|Found no NVIDIA driver|libnvidia-ml.*|NVML Shared Library Not Found",
     "no NVIDIA driver is mounted into this container", START),
    (None, r"Driver Not Loaded|kernel driver",
     "the host's NVIDIA kernel module is not loaded", ["on the host: modprobe nvidia, then see dmesg"]),
    (999, r"unknown error|incorrectly set up environment",
     "the driver is in a bad state, as after suspend, or without its uvm device",
     ["on the host: nvidia-modprobe -u -c=0; does /dev/nvidia-uvm exist here?", "restart the container, at last the host"]),
]


def version(text):
    """'525.60.13' as a tuple that compares; () when there is no number."""
    return tuple(int(n) for n in re.findall(r"\d+", text or ""))


def floor_of(env):
    """The oldest driver this image supports, as its environment says; '' if it does not."""
    floor = env.get("IMGFORGE_DRIVER_FLOOR", "").lstrip(">= ")
    if floor:
        return floor
    found = re.search(r"driver>=([0-9.]+)", env.get("NVIDIA_REQUIRE_CUDA", ""))
    return found.group(1) if found else ""


def diagnose(text, code=None):
    """(meaning, [what to do]) for an error's code or text, or None."""
    by_code = [row for row in KNOWN if code is not None and row[0] == code]
    by_text = [row for row in KNOWN if re.search(row[1], text, re.IGNORECASE)]
    for _, _, meaning, todo in by_code + by_text:
        return meaning, todo
    return None


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


def hidden_by(env, found):
    """Which variable hides every GPU, as NAME=value, or ''. With a device found,
    NVIDIA_VISIBLE_DEVICES=void only means that CDI, not the runtime, brought it."""
    names = {"CUDA_VISIBLE_DEVICES": ("", "-1", "NoDevFiles")}
    if not found:
        names["NVIDIA_VISIBLE_DEVICES"] = ("", "none", "void")
    for name, values in names.items():
        if env.get(name) in values:
            return f"{name}={env[name]!r}"
    return ""


def size(count):
    """Bytes for people."""
    return "hidden" if count is None else f"{count / 2**30:.1f} GiB"


class Report:
    """What was found; problems make the exit code 1, notes do not."""

    def __init__(self):
        self.driver, self.floor, self.cuda = "", "", ""
        self.gpus, self.torch, self.problems, self.notes = [], {}, [], []

    def problem(self, what, todo, meaning=""):
        entry = {"problem": what, "meaning": meaning, "do": list(todo)}
        # One cause shows in several places: say it once.
        if not any(p["do"] == entry["do"] and p["meaning"] == meaning for p in self.problems):
            self.problems.append(entry)

    def failure(self, where, text, code=None):
        """Add an error of another program, explained when it is a known one."""
        meaning, todo = diagnose(text, code) or ("", ["search for this message together with the driver's version"])
        self.problem(f"{where}: {text.strip()}", todo, meaning)

    def as_dict(self):
        return {"ok": not self.problems, **vars(self)}


def check_driver_library(report):
    """Ask libcuda itself: it gives the error code that everything above hides."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as err:
        report.failure("libcuda", str(err))
        return False
    code = cuda.cuInit(0)
    if code:
        name = ctypes.c_char_p()
        cuda.cuGetErrorString(code, ctypes.byref(name))
        text = name.value.decode() if name.value else "no text"
        report.failure(f"cuInit gives error {code}", text, code)
        return False
    number = ctypes.c_int()
    if cuda.cuDriverGetVersion(ctypes.byref(number)) == 0:
        report.cuda = f"{number.value // 1000}.{number.value % 1000 // 10}"
    return True


def check_devices(report):
    """List GPUs with NVML, which needs no CUDA."""
    try:
        import pynvml
    except ImportError:
        report.notes.append("pynvml is not installed (pip install nvidia-ml-py): the GPUs are not listed")
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as err:
        report.failure("NVML", str(err))
        return
    try:
        report.driver = text_of(pynvml.nvmlSystemGetDriverVersion())
        for index in range(pynvml.nvmlDeviceGetCount()):
            report.gpus.append(describe(pynvml, index))
    except pynvml.NVMLError as err:
        report.failure("NVML", str(err))
    finally:
        pynvml.nvmlShutdown()


def text_of(value):
    """NVML's bindings give bytes or str by their version; None where there is no answer."""
    return value.decode() if isinstance(value, bytes) else value


def describe(nvml, index):
    """One GPU; what an old driver, a MIG device or a VM does not tell is None."""

    def ask(function, *args):
        try:
            return getattr(nvml, function)(*args)
        except (nvml.NVMLError, AttributeError):
            return None

    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = ask("nvmlDeviceGetMemoryInfo", handle)
    capability = ask("nvmlDeviceGetCudaComputeCapability", handle)
    processes = []
    for p in ask("nvmlDeviceGetComputeRunningProcesses", handle) or []:
        processes.append({"pid": p.pid, "name": process_name(p.pid), "memory": p.usedGpuMemory})
    return {
        "index": index,
        "name": text_of(ask("nvmlDeviceGetName", handle)),
        "uuid": text_of(ask("nvmlDeviceGetUUID", handle)),
        "capability": list(capability) if capability else None,
        "memory": memory.total if memory else None,
        "free": memory.free if memory else None,
        "processes": processes,
    }


def process_name(pid):
    """A process of another container has a pid that means nothing here."""
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except OSError:
        return "outside this container"


def check_floor(report, env):
    report.floor = floor_of(env)
    if not report.driver:
        report.driver = loaded_driver()
    if report.floor and report.driver and version(report.driver) < version(report.floor):
        report.problem(
            f"driver {report.driver} is older than {report.floor}, the oldest this image supports",
            ["upgrade the host's driver", "or use an image with a lower floor, or an older CUDA"])


def loaded_driver(path="/proc/driver/nvidia/version"):
    """The kernel module's version, which is visible even when NVML is not."""
    try:
        with open(path) as f:
            found = re.search(r"\s(\d{3}\.\d+(?:\.\d+)?)\s", f.read())
    except OSError:
        return ""
    return found.group(1) if found else ""


def check_memory(report):
    for gpu in report.gpus:
        if gpu["memory"] and gpu["free"] < gpu["memory"] * 0.1:
            report.notes.append(f"GPU {gpu['index']} has only {size(gpu['free'])} of {size(gpu['memory'])} free")


def check_torch(report, run=subprocess.run):
    """Try torch in a process of its own, which may crash or hang."""
    try:
        done = run([sys.executable, os.path.abspath(__file__), "--torch-probe"],
                   capture_output=True, text=True, timeout=TORCH_SECONDS)
    except subprocess.TimeoutExpired:
        report.problem(f"torch did not answer within {TORCH_SECONDS} s",
                       ["is the GPU hung? on the host: nvidia-smi, dmesg | grep Xid"])
        return
    try:
        report.torch = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        report.failure(f"torch ended with code {done.returncode}", last)
        return
    judge_torch(report)


def judge_torch(report):
    torch = report.torch
    if torch.get("missing"):
        report.notes.append("torch is not installed in this environment")
        return
    if torch.get("broken"):
        report.failure("import torch", torch["broken"])
        return
    if not torch.get("cuda"):
        report.problem(f"torch {torch.get('version')} is a build without CUDA",
                       ["something replaced this image's torch: pip list, then install the CUDA build again"])
        return
    if torch.get("error"):
        report.failure("torch", torch["error"])
    for device in torch.get("devices", []):
        where = f"GPU {device['index']} ({device['name']})"
        if not serves(device["capability"], torch["archs"]):
            report.problem(f"{where}: capability {dotted(device['capability'])} is not among {' '.join(torch['archs'])}",
                           diagnose("", 209)[1], diagnose("", 209)[0])
        elif device.get("error"):
            report.failure(where, device["error"])
        elif not device["right"]:
            report.problem(f"{where}: a small matrix product came out wrong",
                           ["the GPU may be faulty: on the host run dcgmi diag -r 3, look for ECC errors in nvidia-smi -q"])


def dotted(capability):
    return ".".join(str(n) for n in capability) if capability else "unknown"


def torch_probe():
    """Runs in the process of its own; prints one line of JSON."""
    try:
        import torch
    except Exception as err:
        if isinstance(err, ModuleNotFoundError) and err.name == "torch":
            return {"missing": True}
        return {"broken": f"{type(err).__name__}: {err}".splitlines()[0]}
    out = {"version": torch.__version__, "cuda": torch.version.cuda, "archs": [], "devices": []}
    if not torch.version.cuda:
        return out
    try:
        torch.cuda.init()  # is_available() would only say no
    except Exception as err:
        out["error"] = str(err).splitlines()[0]
        return out
    out["archs"] = torch.cuda.get_arch_list()
    for index in range(torch.cuda.device_count()):
        out["devices"].append(probe_device(torch, index))
    return out


def probe_device(torch, index):
    device = {"index": index, "name": torch.cuda.get_device_name(index),
              "capability": list(torch.cuda.get_device_capability(index)), "right": False}
    try:
        torch.manual_seed(0)
        a, b = torch.rand(128, 128), torch.rand(128, 128)
        torch.backends.cuda.matmul.allow_tf32 = False
        got = (a.to(f"cuda:{index}") @ b.to(f"cuda:{index}")).cpu().double()
        device["right"] = bool(torch.allclose(got, a.double() @ b.double(), rtol=1e-4))
    except Exception as err:
        device["error"] = str(err).splitlines()[0]
    return device


def render(report):
    """The report as text for people."""
    lines = ["the GPU is usable" if not report.problems else "the GPU is not usable as it is", ""]
    floor = f", this image needs {report.floor} or newer" if report.floor else ""
    cuda = f", up to CUDA {report.cuda}" if report.cuda else ""
    lines.append(f"  driver  {report.driver or 'none'}{cuda}{floor}")
    for gpu in report.gpus:
        lines.append(f"  GPU {gpu['index']}   {gpu['name'] or 'without a name'}, capability {dotted(gpu['capability'])}, "
                     f"{size(gpu['free'])} free of {size(gpu['memory'])}")
        for p in gpu["processes"]:
            lines.append(f"          process {p['pid']} ({p['name']}): {size(p['memory'])}")
    if report.torch.get("version"):
        right = sum(1 for d in report.torch.get("devices", []) if d["right"])
        lines.append(f"  torch   {report.torch['version']} for CUDA {report.torch['cuda']}, computes rightly on {right} GPU(s)")
    for note in report.notes:
        lines.append(f"  note    {note}")
    for p in report.problems:
        lines += ["", f"problem: {p['problem']}"]
        if p["meaning"]:
            lines.append(f"  that is: {p['meaning']}")
        lines.append("  what to do:")
        lines += [f"  - {step}" for step in p["do"]]
    return "\n".join(lines)


def examine(options, env):
    report = Report()
    check_devices(report)
    check_floor(report, env)
    found = bool(glob.glob("/dev/nvidia[0-9]*") or os.path.exists("/dev/dxg"))
    hider = hidden_by(env, found or report.gpus)
    if hider:
        report.problem(f"{hider} hides every GPU", ["start the container, or this shell, without it"])
    works = check_driver_library(report)
    if works and not found and not report.gpus:
        report.problem("there is no GPU device in this container", START)
    if works and not options.no_torch:
        check_torch(report)
    check_memory(report)
    return report


def arguments(argv):
    about, _, codes = __doc__.partition("exit codes:")
    parser = argparse.ArgumentParser(
        prog="gpu-check", description=about.strip(), epilog="exit codes:" + codes.rstrip(),
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the report as JSON, for programs")
    parser.add_argument("--no-torch", action="store_true", help="look at driver and GPUs only: takes well under a second")
    parser.add_argument("--torch-probe", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main(argv):
    options = arguments(argv)
    if options.torch_probe:
        print(json.dumps(torch_probe()))
        return 0
    report = examine(options, os.environ)
    print(json.dumps(report.as_dict(), indent=2) if options.json else render(report))
    return 1 if report.problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as err:  # a bug here must not look like a bug of the GPU
        print(f"gpu-check: it failed itself: {type(err).__name__}: {err}", file=sys.stderr)
        sys.exit(1)
