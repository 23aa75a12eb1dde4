"""A stand-in for torch: tensors of one number alone, on devices that FAKE describes."""

import contextlib
import copy
import math
import sys
import types
import warnings

from fakes import fault, told

fault("import torch")
print("torch is noisy")
for text in told("warn", []):
    warnings.warn(text)
sys.stderr.write(told("say", ""))
__version__ = told("torch", "2.4.1+cu121")
version = types.SimpleNamespace(cuda=told("cuda", "12.1"))
float16, float32, bfloat16, float64 = "float16", "float32", "bfloat16", "float64"


class Tensor:
    """A tensor of n times the same number."""

    def __init__(self, value, n=1, kind=float32, device="cpu"):
        self.value, self.n, self.kind, self.device = value, n, kind, str(device)
        if self.device != "cpu":
            fault("alloc")

    def to(self, what):
        if what in (float16, float32, bfloat16, float64):
            return Tensor(self.value, self.n, what, self.device)
        return Tensor(self.value, self.n, self.kind, what)

    def like(self, value):
        return Tensor(value, self.n, self.kind, self.device)

    def cpu(self):
        return self.to("cpu")

    def double(self):
        return self.to(float64)

    def __matmul__(self, other):
        off = told("wrong") == self.kind and self.device != "cpu"
        return self.like(self.value * other.value * (float(told("by", 1.1)) if off else 1))

    def __mul__(self, number):
        return self.like(self.value * number)

    def __add__(self, other):
        return self.like(self.value + other.value)

    def __sub__(self, other):
        return self.like(self.value - other.value)

    def __truediv__(self, other):
        return self.like(self.value / other.value)

    def __getitem__(self, at):
        return self.value

    def __float__(self):
        return float(self.value)

    def abs(self):
        return self.like(abs(self.value))

    def max(self):
        return self

    def sum(self):
        return self.like(self.value * self.n + (self.device != "cpu" and told("wrong") == "sum"))

    def numpy(self):
        fault("numpy")
        return self.value


def rand(*shape, device="cpu"):
    return Tensor(0.5, device=device)


def zeros(*shape):
    return Tensor(0.0)


def full(shape, value, device="cpu"):
    return Tensor(value, device=device)


def arange(n, device="cpu"):
    return Tensor((n - 1) / 2, n, device=device)


def sin(x):
    return x.like(math.sin(x.value))


def cos(x):
    return x.like(math.cos(x.value))


def from_numpy(array):
    fault("from_numpy")
    return copy.deepcopy(array) if told("wrong") == "from_numpy" else array


def allclose(a, b, rtol, atol):
    return abs(a.value - b.value) <= atol + rtol * abs(b.value)


def compile(function):
    def compiled(x):
        fault("compile")
        counters["frames"]["ok"] += told("compiled", 1)
        return function(x) * (1.5 if told("wrong") == "compile" else 1)
    return compiled


def manual_seed(seed):
    pass


no_grad = contextlib.nullcontext
counters = {"frames": {"ok": 0}}
_dynamo = types.SimpleNamespace(utils=types.SimpleNamespace(counters=counters), config=types.SimpleNamespace(suppress_errors=False))


class Conv2d:
    device = "cpu"

    def __init__(self, *sizes):
        pass

    def to(self, device):
        self.device = device
        return self

    def __call__(self, x):
        return x * (1.5 if told("wrong") == "conv" and self.device != "cpu" else 1)


nn = types.SimpleNamespace(Conv2d=Conv2d)


class cuda:
    @staticmethod
    def init():
        fault("init")

    @staticmethod
    def is_available():
        return told("devices", 1) > 0

    @staticmethod
    def device_count():
        return 0 if told("init") else told("devices", 1)

    @staticmethod
    def get_arch_list():
        return told("archs", ["sm_50", "sm_80", "sm_86", "sm_90"])

    @staticmethod
    def get_device_name(index):
        return told("name", "NVIDIA GeForce RTX 4090")

    @staticmethod
    def get_device_capability(index):
        return tuple(told("capability", [8, 9]))

    @staticmethod
    def synchronize(index=0):
        fault("synchronize")

    @staticmethod
    def empty_cache():
        pass

    @staticmethod
    def memory_allocated(index):
        return told("held", 0)

    memory_reserved = memory_allocated

    @staticmethod
    def set_device(index):
        pass

    nccl = types.SimpleNamespace(version=lambda: (2, 20, 5))


class _cudnn:
    @staticmethod
    def is_available():
        return told("cudnn", 90100) is not None

    @staticmethod
    def version():
        fault("cudnn version")
        return told("cudnn", 90100)


backends = types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=types.SimpleNamespace()), cudnn=_cudnn)
_C = types.SimpleNamespace(_cudnn=types.SimpleNamespace(getCompileVersion=lambda: told("built", (9, 1, 0))))
