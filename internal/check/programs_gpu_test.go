package check

import "testing"

// What nvidia-smi says, on every kind of host.
func TestNvidiaSMI(t *testing.T) {
	const smi = "nvidia-smi"
	ends := func(code, text string) string { return `"smi": {"exit": ` + code + `, "says": "` + text + `"}` }
	try(t, "nvidia-smi", []trial{
		{name: "good", has: smi, with: "floor=550.54.14 gpu=rtx_4090 max-used=2"},
		{name: "none", says: []string{"there is no nvidia-smi", "no NVIDIA driver is mounted", "--gpus all"}},
		{name: "old driver", has: smi, fake: `"refuses": ["compute_cap", "mig.mode.current"], "gpus": [{"driver_version": "450.80.02"}]`, with: "floor=450.80.02"},
		{name: "very old driver", has: smi, fake: `"refuses": ["memory.used"]`, says: []string{`code 2: Field "memory.used" is not a valid field`, "report the driver's version"}},
		{name: "below the floor", has: smi, fake: `"gpus": [{"driver_version": "525.60.9"}]`, with: "floor=525.60.13",
			says: []string{"driver 525.60.9 is older than 525.60.13", "upgrade the host's driver"}},
		{name: "a floor that is none", has: smi, with: "floor=new", says: []string{"code 2", "--floor=new", "no version"}},
		{name: "another GPU", has: smi, fake: `"gpus": [{"name": "NVIDIA H200"}]`, with: "gpu=H20", says: []string{"GPU 0 is NVIDIA H200, not H20", "where that GPU is"}},
		{name: "one of two is another", has: smi, fake: `"gpus": [{}, {"index": "1", "name": "Tesla T4"}]`, with: "gpu=4090", says: []string{"GPU 1 is Tesla T4"}},
		{name: "memory in use", has: smi, fake: `"gpus": [{"memory.used": "1025"}]`, with: "max-used=1024", says: []string{"GPU 0: 1025 MiB are in use", "end what uses it"}},
		{name: "memory unknown", has: smi, fake: `"gpus": [{"memory.used": "[N/A]"}]`, with: "max-used=1024", says: []string{"GPU 0: its memory in use is not known", "max-used"}},
		{name: "memory of no interest", has: smi, fake: `"gpus": [{"memory.used": "[N/A]"}]`},
		{name: "a bound that is none", has: smi, with: "max-used=1GiB", says: []string{"code 2", "--max-used=1GiB"}},
		{name: "other processes", has: smi, fake: `"processes": ["17, python3, 400", "18, [Not Found], 9"]`, with: "max-used=1024", says: []string{"2 other processes", "python3", "idle GPU"}},
		{name: "processes of no interest", has: smi, fake: `"processes": ["17, python3, 400"]`},
		{name: "processes not told", has: smi, fake: `"smi": {"at": "apps", "exit": 3, "says": "Not supported"}`, with: "max-used=1024", says: []string{"code 3: Not supported", "not available"}},
		{name: "MIG", has: smi, fake: `"gpus": [{"mig.mode.current": "Enabled"}], "instances": ["GPU 0: NVIDIA A100 (UUID: GPU-1)", "  MIG 1g.5gb      Device  0: (UUID: MIG-2)"]`},
		{name: "MIG without a device", has: smi, fake: `"gpus": [{"mig.mode.current": "Enabled"}], "instances": ["GPU 0: NVIDIA A100 (UUID: GPU-1)"]`,
			says: []string{"GPU 0 is in MIG mode and has no MIG device", "nvidia-smi mig -cgi"}},
		{name: "MIG not told", has: smi, fake: `"gpus": [{"mig.mode.current": "Enabled"}], "smi": {"at": "list", "exit": 255, "says": "Unknown thing"}`, says: []string{"code 255: Unknown thing", "internal error"}},
		{name: "no GPU", has: smi, fake: `"gpus": []`, says: []string{"lists no GPU", "--gpus all"}},
		{name: "hangs", has: smi, fake: `"smi": {"hangs": true}`, files: map[string]string{"hurry.py": hurry, "hurry.pth": "import hurry"}, says: []string{"does not end within a minute", "Xid", "hangs"}},
		{name: "NVML mismatch", has: smi, fake: ends("18", "Failed to initialize NVML: Driver/library version mismatch\\nNVML library version: 550.54\\n"),
			says: []string{"code 18: Failed to initialize NVML: Driver/library version mismatch", "upgraded while the old kernel module", "reboot the host"}},
		{name: "prints prose", has: smi, fake: `"smi": {"prints": [104, 105, 10]}`, says: []string{"another form: hi"}},
		{name: "prints no text", has: smi, fake: `"smi": {"prints": [255, 254, 44, 0, 10, 34]}`, says: []string{"another form"}},
		{name: "prints numbers that are none", has: smi, fake: `"gpus": [{"driver_version": "[N/A]"}]`, says: []string{"driver's version is '[N/A]'"}},
		{name: "exit 2", has: smi, fake: ends("2", "Invalid combination of input arguments."), says: []string{"code 2: Invalid combination", "argument was not understood"}},
		{name: "exit 3", has: smi, fake: ends("3", ""), says: []string{"code 3: no message", "not available on this GPU"}},
		{name: "exit 4", has: smi, fake: ends("4", "Failed to initialize NVML: Insufficient Permissions"), says: []string{"code 4", "may not ask the driver", "/dev/nvidia*"}},
		{name: "exit 6", has: smi, fake: ends("6", "No devices were found"), says: []string{"code 6: No devices were found", "found nothing", "--gpus all"}},
		{name: "exit 8", has: smi, fake: ends("8", ""), says: []string{"code 8", "power cable"}},
		{name: "exit 9", has: smi, fake: ends("9", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."), says: []string{"code 9", "kernel module is not loaded", "modprobe nvidia"}},
		{name: "exit 9, mute", has: smi, fake: ends("9", ""), says: []string{"code 9", "driver is not loaded", "modprobe nvidia"}},
		{name: "exit 10", has: smi, fake: ends("10", ""), says: []string{"code 10", "interrupts", "dmesg"}},
		{name: "exit 12", has: smi, fake: ends("12", "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system."), says: []string{"code 12", "no NVIDIA driver is mounted", "--gpus all"}},
		{name: "exit 13", has: smi, fake: ends("13", "Function Not Found"), says: []string{"code 13", "lacks this function", "upgrade"}},
		{name: "exit 14", has: smi, fake: ends("14", "0, NVIDIA A30, GPU-1, 550.54.14, 1, 1, [N/A], 8.0\\nWARNING: infoROM is corrupted at gpu 0000:01:00.0"),
			says: []string{"code 14: WARNING: infoROM is corrupted", "infoROM is damaged"}},
		{name: "exit 15", has: smi, fake: ends("15", "Unable to determine the device handle for GPU 0000:41:00.0: GPU is lost."), says: []string{"code 15", "stopped answering", "Xid"}},
		{name: "exit 15, mute", has: smi, fake: ends("15", ""), says: []string{"code 15", "fallen off the bus"}},
		{name: "exit 255", has: smi, fake: ends("255", ""), says: []string{"code 255", "internal error", "dmesg"}},
		{name: "cgroup lost", has: smi, fake: ends("255", "Failed to initialize NVML: Unknown Error"), says: []string{"code 255", "bad state", "restart the container"}},
	})
}

// hurry makes a minute a moment.
const hurry = `
import subprocess
_wait = subprocess.Popen.communicate
subprocess.Popen.communicate = lambda self, input=None, timeout=None: _wait(self, input, timeout and 0.3)
`

// errorTable is what CUDA, torch and triton say, and what it means.
var errorTable = []trial{
	{name: "35", fake: `CUDA driver version is insufficient for CUDA runtime version`, says: []string{"is insufficient", "too old for the CUDA", "upgrade the host's driver"}},
	{name: "35 of torch", fake: `The NVIDIA driver on your system is too old (found version 11080). Please update your GPU driver`, says: []string{"found version 11080", "too old for the CUDA", "upgrade the host's driver"}},
	{name: "100", fake: `No CUDA GPUs are available`, says: []string{"No CUDA GPUs", "no GPU is given to this container", "NVIDIA_VISIBLE_DEVICES"}},
	{name: "100 of CUDA", fake: `Unexpected error from cudaGetDeviceCount(). Error 100: no CUDA-capable device is detected`, says: []string{"Error 100", "no GPU is given to this container", "--gpus all"}},
	{name: "100 of torch", fake: `CUDA driver initialization failed, you might not have a CUDA gpu.`, says: []string{"no GPU is given"}},
	{name: "200", fake: `CUDA error: device kernel image is invalid\nCUDA kernel errors might be asynchronously reported`, says: []string{"device kernel image is invalid", "newer ptxas", "TRITON_PTXAS_PATH"}},
	{name: "209", fake: `CUDA error: no kernel image is available for execution on the device`, says: []string{"no kernel image", "no code for this GPU's architecture", "get_arch_list"}},
	{name: "222", fake: `CUDA error: the provided PTX was compiled with an unsupported toolchain.`, says: []string{"unsupported toolchain", "newer than the driver", "upgrade the host's driver"}},
	{name: "802", fake: `Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized`, says: []string{"Error 802", "NVSwitch", "nvidia-fabricmanager"}},
	{name: "803", fake: `Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver combination`,
		says: []string{"Error 803", "libcuda does not belong to the host's kernel module", "find / -xdev -name 'libcuda.so*'"}},
	{name: "804", fake: `Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted on non supported HW`, says: []string{"Error 804", "cuda-compat", "LD_LIBRARY_PATH"}},
	{name: "999", fake: `CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable CUDA_VISIBLE_DEVICES after program start.`,
		says: []string{"CUDA unknown error", "bad state", "nvidia-modprobe -u"}},
	{name: "999 of CUDA", fake: `Unexpected error from cudaGetDeviceCount(). Error 999: unknown error`, says: []string{"Error 999", "bad state", "nvidia-uvm"}},
	{name: "libcuda", fake: `libcuda.so.1: cannot open shared object file: No such file or directory`, says: []string{"libcuda.so.1", "no NVIDIA driver is mounted", "--gpus all"}},
	{name: "no driver", fake: `Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU`, says: []string{"Found no NVIDIA driver", "no NVIDIA driver is mounted"}},
	{name: "triton", fake: `libcuda.so cannot found!\nPossible files are located at [].`, says: []string{"libcuda.so cannot found!", "not in its cache", "run ldconfig"}},
	{name: "NVML", fake: `NVML: Driver/library version mismatch`, says: []string{"version mismatch", "upgraded while the old kernel module", "reboot the host"}},
	{name: "cuTensorMap", fake: `/root/.triton/cache/x/cuda_utils.so: undefined symbol: cuTensorMapEncodeTiled`, says: []string{"cuTensorMapEncodeTiled", "driver does not have", "525 or newer"}},
	{name: "memory", fake: `CUDA out of memory. Tried to allocate 2.00 GiB.`, says: []string{"out of memory", "memory is full", "end what uses it"}},
	{name: "not known", fake: `CUDA error: the moon is full`, says: []string{"the moon is full", "search for this message"}},
}

// raised are the rows of the table, raised at a place by a stand-in.
func raised(place, has string) []trial {
	var out []trial
	for _, row := range errorTable {
		row.name, row.has = place+": "+row.name, has
		row.fake = `"` + place + `": "RuntimeError: ` + row.fake + `"`
		out = append(out, row)
	}
	return out
}

func TestTorchCUDA(t *testing.T) {
	const torch = "torch"
	wrong := func(what, more string) string { return `"wrong": "` + what + `"` + more }
	trials := append(raised("init", torch), raised("alloc", torch)...)
	for _, row := range raised("import torch", torch) {
		if row.name == "import torch: libcuda" {
			trials = append(trials, row)
		}
	}
	try(t, "torch-cuda", append(trials, []trial{
		{name: "good", has: torch, with: "gpu=RTX_4090 count=1"},
		{name: "two GPUs", has: torch, fake: `"devices": 2`, with: "count=2"},
		{name: "no torch", says: []string{"No module named 'torch'", "add the recipe torch"}},
		{name: "torch without a library", has: torch, fake: `"import torch": "ImportError: libtorch_cuda.so: cannot open shared object file"`, says: []string{"import torch: ImportError: libtorch_cuda.so", "from its lock"}},
		{name: "torch without CUDA", has: torch, fake: `"cuda": null, "torch": "2.4.1+cpu"`, says: []string{"torch 2.4.1+cpu is built without CUDA", "lock again"}},
		{name: "no device", has: torch, fake: `"devices": 0`, says: []string{"No CUDA GPUs", "no GPU is given", "--gpus all"}},
		{name: "too few", has: torch, with: "count=2", says: []string{"torch sees 1 GPUs, not 2", "CUDA_VISIBLE_DEVICES"}},
		{name: "a count that is none", has: torch, with: "count=all", says: []string{"code 2", "--count=all"}},
		{name: "another GPU", has: torch, with: "gpu=A100", says: []string{"GPU 0 is NVIDIA GeForce RTX 4090, not A100"}},
		{name: "capability of a later GPU", has: torch, fake: `"capability": [12, 0], "name": "NVIDIA GeForce RTX 5090"`,
			says: []string{"GPU 0 (NVIDIA GeForce RTX 5090, 12.0): no kernel image is available: torch is built for sm_50", "architecture", "get_arch_list"}},
		{name: "capability by PTX", has: torch, fake: `"capability": [12, 0], "archs": ["sm_90", "compute_90"]`},
		{name: "special instructions alone", has: torch, fake: `"capability": [9, 0], "archs": ["sm_90a"]`, says: []string{"torch is built for sm_90a"}},
		{name: "no architectures", has: torch, fake: `"archs": []`, says: []string{"architecture"}},
		{name: "sum", has: torch, fake: wrong("sum", ""), says: []string{"cuda:0: a sum is wrong", "computes wrongly", "at fault"}},
		{name: "float32", has: torch, fake: wrong("float32", `, "by": 1.00001`), says: []string{"cuda:0: a product in float32 is off by 1.0e-05", "computes wrongly", "at fault"}},
		{name: "float16", has: torch, fake: wrong("float16", ""), says: []string{"a product in float16 is off by 1.0e-01"}},
		{name: "bfloat16", has: torch, fake: wrong("bfloat16", ""), says: []string{"a product in bfloat16"}},
		{name: "no bfloat16", has: torch, fake: wrong("bfloat16", `, "capability": [7, 5], "archs": ["sm_75"]`)},
		{name: "not a number", has: torch, fake: wrong("float16", `, "by": "nan"`), says: []string{"off by nan"}},
		{name: "convolution", has: torch, fake: wrong("conv", ""), says: []string{"cuda:0: a convolution is off", "computes wrongly", "at fault"}},
		{name: "late", has: torch, fake: `"synchronize": "RuntimeError: CUDA error: an illegal memory access was encountered"`, says: []string{"cuda:0: CUDA error: an illegal memory access"}},
		{name: "memory kept", has: torch, fake: `"held": 104857600`, says: []string{"cuda:0: 104857600 bytes are not given back", "empty_cache"}},
		{name: "no cuDNN", has: torch, fake: `"cudnn": null`, says: []string{"torch finds no cuDNN", "build the image again"}},
		{name: "another cuDNN", has: torch, fake: `"cudnn": 8902`, says: []string{"cuDNN 8902 is loaded, and torch was built with 90100", "two cuDNNs are mixed", "LD_LIBRARY_PATH"}},
		{name: "a refused cuDNN", has: torch, fake: `"cudnn version": "RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (9, 1, 0) but found runtime version (8, 9, 2)."`,
			says: []string{"cuDNN version incompatibility", "two cuDNNs are mixed", "LD_LIBRARY_PATH"}},
		{name: "mixed cuDNN", has: torch, fake: `"alloc": "RuntimeError: cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"`, says: []string{"two cuDNNs are mixed"}},
		{name: "the module exits", has: torch, fake: `"import torch": "SystemExit: 0"`, says: []string{"SystemExit: 0"}},
	}...))
}

func TestTorchCompile(t *testing.T) {
	const all = "torch gcc nvidia-smi"
	inductor := `"compile": "RuntimeError: backend='inductor' raised:\nRuntimeError: Triton Error [CUDA]: device kernel image is invalid\n\nSet TORCH_LOGS=\"+dynamo\""`
	try(t, "torch-compile", append(append(raised("compile", all), raised("init", all)...), []trial{
		{name: "good", has: all, with: "floor=525.60.13"},
		{name: "no torch", has: "gcc", says: []string{"No module named 'torch'", "add the recipe torch"}},
		{name: "no compiler", has: "torch nvidia-smi", says: []string{"no C compiler", "add the recipe devel"}},
		{name: "below the floor", has: all, with: "floor=570.26", says: []string{"torch.compile of this build needs driver 570.26, and 550.54.14 is here", "TRITON_PTXAS_PATH"}},
		{name: "a floor that is none", has: all, with: "floor=new", says: []string{"code 2", "--floor=new"}},
		{name: "wrapped", has: all, fake: inductor, says: []string{"torch.compile: RuntimeError: Triton Error [CUDA]: device kernel image is invalid", "newer ptxas", "TRITON_PTXAS_PATH"}},
		{name: "wrong", has: all, fake: `"wrong": "compile"`, says: []string{"a compiled kernel is off by", "computes wrongly", "TORCHINDUCTOR"}},
		{name: "given up in silence", has: all, fake: `"compiled": 0`, says: []string{"torch.compile compiled nothing"}},
		{name: "switched off", has: all, env: []string{"TORCHDYNAMO_DISABLE=1"}, says: []string{"TORCHDYNAMO_DISABLE=1 is set", "compiles nothing", "take it out"}},
	}...))
}

func TestNCCL(t *testing.T) {
	try(t, "nccl", []trial{
		{name: "one", has: "torch"},
		{name: "two", has: "torch", fake: `"devices": 2`},
		{name: "no torch", says: []string{"No module named 'torch'", "add the recipe torch"}},
		{name: "no GPU", has: "torch", fake: `"devices": 0`, says: []string{"No CUDA GPUs", "no GPU is given"}},
		{name: "no GPU for a reason", has: "torch", fake: `"init": "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted on non supported HW"`,
			says: []string{"Error 804", "cuda-compat"}},
		{name: "wrong", has: "torch", fake: `"devices": 2, "wrong": "sum"`, says: []string{"the sum is 1.0, not 3.0"}, more: -1},
		{name: "one rank fails, the other waits", has: "torch", fake: `"devices": 2, "ranks": {"1": "RuntimeError: Cuda failure 'out of memory'"}`, says: []string{"rank 1: RuntimeError: Cuda failure", "memory is full"}},
		{name: "shared memory", has: "torch", fake: `"devices": 2, "ranks": {"0": "Error while creating shared memory segment /dev/shm/nccl-x (size 9637888)"}`, says: []string{"rank 0: Error while creating shared memory", "--shm-size"}},
	})
}
