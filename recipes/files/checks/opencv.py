"""Is there one OpenCV, without windows, that writes and reads pictures?"""

import re
from importlib import metadata

from result import Stop, main

NAMES = ["opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless"]
ALONE = "keep opencv-python-headless alone"


def remedy(err):
    """(what to do, what it means) of a failed import."""
    if isinstance(err, ModuleNotFoundError) and err.name == "cv2":
        return ("add the recipe opencv-headless",)
    if "libGL" in str(err):
        return ALONE, "an OpenCV with windows is installed"
    if "cannot open shared object file" in str(err):
        return "add the package that has it to the `debs` of the recipe: libglib2.0-0 for libgthread and libglib", "a library of the system is missing"
    return ("build the image again from its lock",)


def check(options, report):
    found = []
    for name in NAMES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            pass
    if len(found) > 1:
        report.problem(" and ".join(found) + " are installed, and overwrite each other in cv2/", ALONE)
    for name in found:
        if "headless" not in name:
            report.problem(f"{name} opens windows: it needs libGL and X libraries, which a server's image lacks",
                           "use opencv-python-headless; see who pulled it: imgforge lock --why " + name.split()[0])
    try:
        import cv2
        import numpy
    except Exception as err:
        report.problem(f"import cv2: {type(err).__name__}: {err}".splitlines()[0], *remedy(err))
        raise Stop from err
    if not hasattr(cv2, "imencode"):
        report.problem("cv2 is not whole: it has no imencode", ALONE, "another OpenCV overwrote its files, or took them along")
        raise Stop
    gui = re.search(r"^\s*GUI:\s*(.*)$", cv2.getBuildInformation(), re.MULTILINE)
    windows = gui.group(1).strip() if gui else "it does not say"
    if windows.upper() not in ("NONE", "NO"):
        report.problem(f"cv2 is built with windows ({windows})", "use opencv-python-headless")
    picture = numpy.zeros((32, 48, 3), numpy.uint8)
    picture[:, :, 2] = 200
    for kind in (".jpg", ".png"):
        ok, data = cv2.imencode(kind, picture)
        back = cv2.imdecode(data, cv2.IMREAD_COLOR) if ok else None
        if back is None or back.shape != picture.shape or abs(int(back[16, 24, 2]) - 200) > 8:
            report.problem(f"a picture written as {kind} does not come back", "build the image again from its lock")
    report.summary = f"cv2 {cv2.__version__}, headless"


if __name__ == "__main__":
    main(check)
