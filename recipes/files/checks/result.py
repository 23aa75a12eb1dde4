"""What every check's program shares: options, problems, and the one line of JSON that
is its answer.

A program is a function check(options, report), run by main(). Whatever it or a library
prints goes to standard error; the answer alone is the last line of standard output. An
exception is a problem like any other, never a traceback in place of an answer.
"""

import json
import math
import os
import re
import subprocess
import sys
import traceback


class Report:
    """What a check found. It passes when there is no problem."""

    def __init__(self):
        self.summary, self.problems, self.facts = "", [], {}

    def problem(self, what, do=(), meaning=""):
        """Note one thing that is wrong, what it means and what to do."""
        entry = {"problem": str(what)[:1000]}
        if meaning:
            entry["meaning"] = meaning
        if do:
            entry["do"] = [do] if isinstance(do, str) else list(do)
        if entry not in self.problems:
            self.problems.append(entry)

    def answer(self):
        ok = not self.problems
        out = {"ok": ok, "summary": self.summary if ok and self.summary else "as it should be"}
        if not ok:
            more = len(self.problems) - 1
            out["summary"] = self.problems[0]["problem"].splitlines()[0][:160] + (f" (and {more} more)" if more else "")
            out["problems"] = self.problems
        if self.facts:
            out["facts"] = self.facts
        return out


class Stop(Exception):
    """Nothing more can be learnt; what is wrong is in the report."""


def options(argv, known):
    """Read --name=value arguments; known maps names to what reads a value. An option
    that is empty or left out is None."""
    out = dict.fromkeys(known)
    for arg in argv:
        name, found, value = arg.partition("=")
        if not found or not name.startswith("--") or name[2:] not in known:
            print(f"wrong argument {arg!r}; options: " + ", ".join(f"--{n}=..." for n in known), file=sys.stderr)
            sys.exit(2)
        try:
            out[name[2:]] = known[name[2:]](value) if value else None
        except ValueError as err:
            print(f"wrong argument {arg!r}: {err}", file=sys.stderr)
            sys.exit(2)
    return out


def words(text):
    """A comma-separated list."""
    return [word.strip() for word in text.split(",") if word.strip()]


def release(text):
    """A version of numbers, such as 525.60.13."""
    if not re.fullmatch(r"\d+(\.\d+)*", text):
        raise ValueError("that is no version")
    return text


def run(args, **more):
    """Run a program; what it prints is text whatever it prints."""
    return subprocess.run(args, capture_output=True, encoding="utf-8", errors="replace", check=False, **more)


def plain(value):
    """A value as JSON can have it: there is no nan in it."""
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def main(check, known=()):
    """Run a check and answer with its report."""
    chosen = options(sys.argv[1:], dict(known))
    answer = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    report = Report()
    try:
        check(chosen, report)
    except Stop:
        pass
    except BaseException as err:
        if isinstance(err, (KeyboardInterrupt, GeneratorExit)):
            raise
        traceback.print_exc()
        report.problem(f"{type(err).__name__}: {err}".splitlines()[0], meaning=where(err))
    sys.stdout.flush()
    line = json.dumps(plain(report.answer()), ensure_ascii=True, default=str)
    os.write(answer, (line + "\n").encode())
    os._exit(0 if not report.problems else 1)  # threads of a library must not hold us up


def where(err):
    """The place an exception comes from, in one line."""
    frames = traceback.extract_tb(err.__traceback__)
    return f"raised in {frames[-1].name}, {frames[-1].filename} line {frames[-1].lineno}" if frames else ""
