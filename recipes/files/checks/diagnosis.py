"""What failures of the driver, CUDA, torch and triton mean, and what to do."""

import re
import subprocess

from result import Stop, run

START = [
    "docker:     docker run --gpus all ...",
    "podman:     podman run --device nvidia.com/gpu=all ...",
    "nerdctl:    nerdctl run --gpus all ...",
    "Kubernetes: resources: {limits: {nvidia.com/gpu: 1}} in the container's spec",
    "the host needs the NVIDIA driver (does nvidia-smi work there?) and the NVIDIA Container Toolkit",
]

# CUDA's error code, what its message looks like, what it means, what to do. The code
# decides when there is one, else the first text that fits.
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
     "the GPU's memory is full", ["end what uses it (on the host: nvidia-smi)"]),
    (None, r"undefined symbol: cuTensorMapEncodeTiled",
     "triton needs a function that the driver does not have", ["upgrade the host's driver to 525 or newer"]),
    (None, r"libcuda\.so cannot found|libcuda\.so cannot be found",
     "triton asks ldconfig for libcuda, and it is not in its cache",
     ["run ldconfig when the container starts", "or set TRITON_LIBCUDA_PATH to the directory of libcuda.so.1"]),
    (None, r"libcuda\.so.*(cannot open|not found)|Found no NVIDIA driver|libnvidia-ml.*|NVML Shared Library Not Found",
     "no NVIDIA driver is mounted into this container", START),
    (None, r"Driver Not Loaded|kernel driver|couldn't communicate with the NVIDIA driver",
     "the host's NVIDIA kernel module is not loaded", ["on the host: modprobe nvidia, then see dmesg"]),
    (None, r"fallen off the bus|GPU is lost|Unable to determine the device handle",
     "a GPU has stopped answering", ["look at the host's dmesg for Xid errors", "reboot the host; if it comes again, the GPU or its power is at fault"]),
    (None, r"CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH|undefined symbol: .*cudnn|cuDNN version incompatibility",
     "two cuDNNs are mixed: the system's and the one of torch's wheels",
     ["take the system's cuDNN out of the image and out of LD_LIBRARY_PATH"]),
    (999, r"unknown error|incorrectly set up environment",
     "the driver is in a bad state, as after suspend, or without its uvm device",
     ["on the host: nvidia-modprobe -u -c=0; does /dev/nvidia-uvm exist here?", "restart the container, at last the host"]),
]

# What nvidia-smi's exit codes mean.
SMI = {
    2: ("an argument was not understood", ["the driver is older than this check knows: report the driver's version"]),
    3: ("the operation is not available on this GPU", []),
    4: ("this user may not ask the driver", ["run the container as a user who may open /dev/nvidia*"]),
    6: ("a query found nothing", START[:4]),
    8: ("a GPU's power cable is not connected", ["connect it"]),
    9: ("the NVIDIA driver is not loaded", ["on the host: modprobe nvidia, then see dmesg"]),
    10: ("the kernel has seen a problem with a GPU's interrupts", ["look at the host's dmesg"]),
    12: ("NVML's library could not be found or loaded", START),
    13: ("the driver's NVML lacks this function", ["upgrade the host's driver"]),
    14: ("a GPU's infoROM is damaged", ["have the GPU looked at"]),
    15: ("a GPU has fallen off the bus", ["look at the host's dmesg for Xid errors", "reboot the host"]),
    255: ("the driver reported an internal error", ["look at the host's dmesg"]),
}


def known(text, code=None):
    """The row of an error's code or text, or None."""
    if code is None:
        found = re.search(r"[Ee]rror[ :]+(\d+)", text)
        code = int(found.group(1)) if found else None
    by_code = [row for row in KNOWN if code is not None and row[0] == code]
    by_text = [row for row in KNOWN if re.search(row[1], text, re.IGNORECASE)]
    return next(iter(by_code + by_text), None)


def diagnose(text, code=None):
    """(meaning, [what to do]) for an error's code or text, or None."""
    row = known(text, code)
    return row and row[2:]


SEARCH = "search for this message together with the driver's version"


def explain(report, where, text, code=None, todo=SEARCH):
    """Add another program's error, with its meaning when it is a known one: of its lines
    the one that is known. todo is for one that is not."""
    row = known(str(text), code)
    meaning, todo = row[2:] if row else ("", todo)
    lines = [line.strip() for line in str(text).splitlines() if line.strip()] or ["no message"]
    telling = [line for line in lines if row and re.search(row[1], line, re.IGNORECASE)]
    report.problem(f"{where}: {(telling or lines)[0]}", todo, meaning)


def load_torch(report):
    """Import torch, and say why it cannot be."""
    try:
        import torch
    except Exception as err:
        text = f"{type(err).__name__}: {err}"
        if isinstance(err, ModuleNotFoundError) and err.name == "torch":
            report.problem("import torch: " + text, "add the recipe torch")
        else:
            explain(report, "import torch", text, todo="build the image again from its lock")
        raise Stop from err
    return torch


def start_cuda(torch, report):
    """Start CUDA, and say why it does not; torch.cuda.is_available() would only say no."""
    if not torch.version.cuda:
        report.problem(f"torch {torch.__version__} is built without CUDA", "an index gave its CPU build: lock again")
        raise Stop
    try:
        torch.cuda.init()
    except Exception as err:
        explain(report, "torch.cuda.init()", err)
        raise Stop from err
    if not torch.cuda.is_available() or torch.cuda.device_count() == 0:
        explain(report, "torch.cuda", "No CUDA GPUs are available")
        raise Stop


def driver():
    """The version of the host's driver; empty when nothing tells."""
    try:
        found = run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], timeout=60)
        if found.returncode == 0 and version(found.stdout):
            return found.stdout.split()[0]
    except (OSError, subprocess.TimeoutExpired):
        pass
    try:
        with open("/proc/driver/nvidia/version") as f:
            return re.search(r"\d+(\.\d+)+", f.read()).group(0)
    except (OSError, AttributeError):
        return ""


def version(text):
    """'525.60.13' as a tuple that compares; () when there is no number."""
    return tuple(int(n) for n in re.findall(r"\d+", text or ""))
