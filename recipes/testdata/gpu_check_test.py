"""Tests of what gpu-check concludes. usage: gpu_check_test.py PATH-OF-GPU-CHECK"""

import contextlib
import importlib.util
import io
import json
import subprocess
import sys
import types
import unittest

PATH = sys.argv.pop(1)
spec = importlib.util.spec_from_file_location("gpu_check", PATH)
gpu = importlib.util.module_from_spec(spec)
sys.dont_write_bytecode = True
spec.loader.exec_module(gpu)


def torch_says(**more):
    """What the probe reports of a healthy GPU, but for more."""
    out = {"version": "2.4.1+cu121", "cuda": "12.1", "archs": ["sm_80", "sm_90"], "devices": [
        {"index": 0, "name": "NVIDIA H20", "capability": [9, 0], "right": True}]}
    out.update(more)
    return out


def judged(torch):
    report = gpu.Report()
    report.torch = torch
    gpu.judge_torch(report)
    return report


class Versions(unittest.TestCase):
    def test_order_is_by_number(self):
        self.assertLess(gpu.version("525.60.13"), gpu.version("525.105.17"))
        self.assertLess(gpu.version("470.256.02"), gpu.version("525.60.13"))

    def test_floor(self):
        for env, want in [
            ({}, ""),
            ({"NVIDIA_REQUIRE_CUDA": "driver>=525.60.13"}, "525.60.13"),
            ({"NVIDIA_REQUIRE_CUDA": "cuda>=12.1"}, ""),
            ({"IMGFORGE_DRIVER_FLOOR": "535.54.03", "NVIDIA_REQUIRE_CUDA": "driver>=1.2"}, "535.54.03"),
            ({"IMGFORGE_DRIVER_FLOOR": ">=535.54.03"}, "535.54.03"),
        ]:
            with self.subTest(env=env):
                self.assertEqual(gpu.floor_of(env), want)

    def test_under_the_floor_is_a_problem(self):
        for driver, problems in [("525.60.12", 1), ("525.60.13", 0), ("570.1", 0)]:
            report = gpu.Report()
            report.driver = driver
            gpu.check_floor(report, {"NVIDIA_REQUIRE_CUDA": "driver>=525.60.13"})
            self.assertEqual(len(report.problems), problems, driver)


class Diagnosis(unittest.TestCase):
    def test_texts(self):
        for text, word in [
            ("CUDA driver version is insufficient for CUDA runtime version", "too old"),
            ("The NVIDIA driver on your system is too old (found version 11080)", "too old"),
            ("no CUDA-capable device is detected", "no GPU is given"),
            ("No CUDA GPUs are available", "no GPU is given"),
            ("Triton Error [CUDA]: device kernel image is invalid", "ptxas"),
            ("CUDA error: no kernel image is available for execution on the device", "architecture"),
            ("the provided PTX was compiled with an unsupported toolchain.", "newer than the driver"),
            ("Error 803: system has unsupported display driver / cuda driver combination", "kernel module"),
            ("Error 804: forward compatibility was attempted on non supported HW", "cuda-compat"),
            ("Error 802: system not yet initialized", "NVSwitch"),
            ("CUDA unknown error - this may be due to an incorrectly set up environment", "bad state"),
            ("libcuda.so.1: cannot open shared object file: No such file or directory", "mounted"),
            ("Found no NVIDIA driver on your system.", "mounted"),
            ("NVML Shared Library Not Found", "mounted"),
            ("Driver/library version mismatch", "upgraded"),
            ("CUDA out of memory. Tried to allocate 2 GiB", "full"),
        ]:
            with self.subTest(text=text):
                meaning, todo = gpu.diagnose(text)
                self.assertIn(word, meaning)
                self.assertTrue(todo)

    def test_code_wins_over_text(self):
        self.assertEqual(gpu.diagnose("unknown error", 803), gpu.diagnose("", 803))

    def test_every_code_is_known(self):
        for code in (35, 100, 200, 209, 222, 803, 804, 999):
            self.assertIsNotNone(gpu.diagnose("", code), code)

    def test_a_stranger_is_not_explained(self):
        self.assertIsNone(gpu.diagnose("segmentation fault"))
        self.assertIsNone(gpu.diagnose("", 12345))


class Architectures(unittest.TestCase):
    def test_serves(self):
        for capability, archs, want in [
            ((8, 9), ["sm_80", "sm_86"], True),  # machine code, same major
            ((8, 0), ["sm_86"], False),
            ((12, 0), ["sm_80", "sm_90"], False),
            ((12, 0), ["sm_80", "compute_90"], True),  # PTX, later
            ((9, 0), ["sm_90a"], False),
            ((10, 0), ["sm_100"], True),
            ((9, 0), [], False),
        ]:
            with self.subTest(capability=capability, archs=archs):
                self.assertEqual(gpu.serves(capability, archs), want)


class Hidden(unittest.TestCase):
    def test_hidden_by(self):
        for env, found, want in [
            ({}, False, ""),
            ({"NVIDIA_VISIBLE_DEVICES": "all"}, False, ""),
            ({"NVIDIA_VISIBLE_DEVICES": "void"}, False, "NVIDIA_VISIBLE_DEVICES='void'"),
            ({"NVIDIA_VISIBLE_DEVICES": "void"}, True, ""),  # as CDI leaves it
            ({"CUDA_VISIBLE_DEVICES": ""}, True, "CUDA_VISIBLE_DEVICES=''"),
            ({"CUDA_VISIBLE_DEVICES": "0"}, True, ""),
        ]:
            with self.subTest(env=env, found=found):
                self.assertEqual(gpu.hidden_by(env, found), want)


class Torch(unittest.TestCase):
    def test_healthy(self):
        report = judged(torch_says())
        self.assertEqual(report.problems, [])
        self.assertIn("computes rightly on 1 GPU", gpu.render(report))

    def test_missing_is_a_note(self):
        report = judged({"missing": True})
        self.assertEqual((report.problems, len(report.notes)), ([], 1))

    def test_problems(self):
        device = torch_says()["devices"][0]
        for torch, word in [
            (torch_says(cuda=None), "without CUDA"),
            ({"broken": "OSError: libcudart.so.12: cannot open shared object file"}, "import torch"),
            (torch_says(error="Error 804: forward compatibility was attempted", devices=[]), "804"),
            (torch_says(devices=[{**device, "capability": [12, 0]}]), "capability 12.0"),
            (torch_says(devices=[{**device, "right": False}]), "wrong"),
            (torch_says(devices=[{**device, "right": False, "error": "CUDA out of memory"}]), "out of memory"),
        ]:
            with self.subTest(word=word):
                report = judged(torch)
                self.assertEqual(len(report.problems), 1)
                self.assertIn(word, report.problems[0]["problem"])
                self.assertTrue(report.problems[0]["do"])

    def test_probe_that_crashes_or_hangs(self):
        def crash(*_, **__):
            return types.SimpleNamespace(stdout="", stderr="x\nSegmentation fault", returncode=-11)

        def hang(*_, **__):
            raise subprocess.TimeoutExpired("torch", 1)

        for run, word in [(crash, "-11"), (hang, "did not answer")]:
            report = gpu.Report()
            gpu.check_torch(report, run)
            self.assertIn(word, report.problems[0]["problem"])

    def test_probe_reads_the_last_line(self):
        def chatty(*_, **__):
            return types.SimpleNamespace(stdout="a warning\n" + json.dumps(torch_says()), stderr="", returncode=0)

        report = gpu.Report()
        gpu.check_torch(report, chatty)
        self.assertEqual(report.problems, [])


class Output(unittest.TestCase):
    def test_one_cause_is_said_once(self):
        report = gpu.Report()
        report.failure("NVML", "NVML Shared Library Not Found")
        report.failure("libcuda", "libcuda.so.1: cannot open shared object file")
        self.assertEqual(len(report.problems), 1)

    def test_json_holds_the_verdict(self):
        report = judged(torch_says(cuda=None))
        self.assertFalse(json.loads(json.dumps(report.as_dict()))["ok"])

    def test_gpu_lines(self):
        report = gpu.Report()
        report.driver, report.floor, report.cuda = "535.54.03", "525.60.13", "12.2"
        report.gpus = [{"index": 0, "name": "NVIDIA H20", "capability": [9, 0], "memory": 96 * 2**30, "free": 2**30,
                        "processes": [{"pid": 7, "name": "python", "memory": None}]}]
        gpu.check_memory(report)
        text = gpu.render(report)
        for want in ("535.54.03, up to CUDA 12.2, this image needs 525.60.13", "capability 9.0, 1.0 GiB free of 96.0 GiB",
                     "process 7 (python): hidden", "only 1.0 GiB"):
            self.assertIn(want, text)

    def test_usage(self):
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as stopped:
            gpu.main(["--no-such"])
        self.assertEqual(stopped.exception.code, 2)


if __name__ == "__main__":
    unittest.main()
