"""Do the installed distributions fit together?

What `pip check` tells, and what it cannot see: CUDA 11 and CUDA 12 libraries that
overwrite each other, more than one OpenCV, a torchvision of another build, a triton
that torch needs and that is not there.
"""

import re
from importlib import metadata

from result import Stop, main

AGAIN = "build the image again from its lock"
OPENCV = {"opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless"}


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def packaging(report):
    """The library that reads requirements: the environment's own, or pip's."""
    try:
        from packaging import requirements
    except ImportError:
        try:
            from pip._vendor.packaging import requirements
        except ImportError as err:
            report.problem(f"neither packaging nor pip is installed: {err}", "add the recipe python")
            raise Stop from err
    return requirements


def installed(report):
    """Distributions by name: of those with one name what Python finds first. Two in one
    directory are one that overwrote the other."""
    out, places = {}, {}
    for dist in metadata.distributions():
        name = normal(dist.metadata["Name"] or "")
        if name:
            out.setdefault(name, dist)
            places.setdefault((name, str(dist.locate_file(""))), []).append(dist.version)
    for (name, place), versions in sorted(places.items()):
        if len(versions) > 1:
            report.problem(f"{name} is installed {len(versions)} times in {place}: " + ", ".join(sorted(map(str, versions))), AGAIN, "they overwrite each other")
    return out


def required(dists, report):
    """(name, distribution, requirement) of all that one may require of another."""
    read = packaging(report).Requirement
    out = []
    for name, dist in sorted(dists.items()):
        for text in dist.requires or []:
            try:
                out.append((name, dist, read(text)))
            except ValueError:
                report.problem(f"{name} {dist.version} requires {text!r}, which cannot be read", AGAIN)
    return out


def requirements_hold(dists, report):
    """Every requirement of every distribution, extras that others ask for included."""
    every = required(dists, report)
    extras = {name: {""} for name in dists}
    grew = True
    while grew:
        grew = False
        for name, _, req in every:
            wanted = normal(req.name)
            if wanted in extras and applies(req, extras[name]) and not req.extras <= extras[wanted]:
                extras[wanted] |= req.extras
                grew = True
    for name, dist, req in every:
        if not applies(req, extras[name]):
            continue
        other = dists.get(normal(req.name))
        if other is None:
            report.problem(f"{name} {dist.version} requires {req.name}, which is not installed",
                           "add it to the recipe that lists " + name)
        elif not satisfies(other.version, req):
            report.problem(f"{name} {dist.version} requires {req.name}{req.specifier}, and {other.version} is installed",
                           "see who pulled it: imgforge lock --why " + normal(req.name))


def applies(req, extras):
    return req.marker is None or any(req.marker.evaluate({"extra": extra}) for extra in extras)


def satisfies(version, req):
    try:
        return req.specifier.contains(version, prereleases=True)
    except (ValueError, TypeError):  # it is no version
        return not req.specifier


def blind_spots(dists, report):
    cuda = sorted({found.group(1) for name in dists for found in [re.match(r"nvidia-.*-(cu1\d)$", name)] if found})
    if len(cuda) > 1:
        report.problem("CUDA libraries of " + " and ".join(cuda) + " are installed, and overwrite each other in site-packages/nvidia",
                       "keep those of torch's CUDA alone")
    opencv = sorted(OPENCV & set(dists))
    if len(opencv) > 1:
        report.problem(", ".join(opencv) + " share the directory cv2/ and overwrite each other", "keep opencv-python-headless alone")
    torch = dists.get("torch")
    for name in ("torchvision", "torchaudio"):
        if torch and name in dists:
            builds = [local(d.version) for d in (torch, dists[name])]
            if builds[0] and builds[1] and builds[0] != builds[1]:
                report.problem(f"{name} {dists[name].version} is built for {builds[1]} and torch {torch.version} for {builds[0]}",
                               "lock both from one index")
    read = packaging(report).Requirement
    wants = [read(text) for text in (torch.requires or []) if re.match(r"triton\b", text)] if torch else []
    if any(applies(req, {""}) for req in wants) and not {"triton", "pytorch-triton"} & set(dists):
        report.problem("torch requires triton, which is not installed: torch.compile fails when it is first used", "lock again, and build the image from that lock")


def local(version):
    """cu121 of 2.4.1+cu121."""
    return version.partition("+")[2]


def check(options, report):
    dists = installed(report)
    if not dists:
        report.problem("no distribution is installed", "run the check with the image's own Python")
        raise Stop
    requirements_hold(dists, report)
    blind_spots(dists, report)
    report.summary = f"{len(dists)} distributions fit together"
    report.facts["distributions"] = len(dists)


if __name__ == "__main__":
    main(check)
