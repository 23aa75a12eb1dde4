"""Is there one OpenCV, without windows, that writes and reads pictures?"""

import re
from importlib import metadata

from result import Stop, main

NAMES = ["opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless"]


def check(options, report):
    found = []
    for name in NAMES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            pass
    if len(found) > 1:
        report.problem(" and ".join(found) + " are installed, and overwrite each other in cv2/", "keep opencv-python-headless alone")
    for name in found:
        if "headless" not in name:
            report.problem(f"{name} opens windows: it needs libGL and X libraries, which a server's image lacks",
                           "use opencv-python-headless; see who pulled it: imgforge lock --why opencv-python")
    try:
        import cv2
        import numpy
    except Exception as err:
        meaning = "an OpenCV with windows is installed" if "libGL" in str(err) else ""
        report.problem(f"import cv2: {type(err).__name__}: {err}".splitlines()[0], "keep opencv-python-headless alone", meaning)
        raise Stop from err
    gui = re.search(r"^\s*GUI:\s*(.*)$", cv2.getBuildInformation(), re.MULTILINE)
    if gui and gui.group(1).strip().upper() not in ("NONE", "NO"):
        report.problem(f"cv2 is built with windows ({gui.group(1).strip()})", "use opencv-python-headless")
    picture = numpy.zeros((32, 48, 3), numpy.uint8)
    picture[:, :, 2] = 200
    for kind in (".jpg", ".png"):
        ok, data = cv2.imencode(kind, picture)
        back = cv2.imdecode(data, cv2.IMREAD_COLOR) if ok else None
        if back is None or back.shape != picture.shape or abs(int(back[16, 24, 2]) - 200) > 8:
            report.problem(f"a picture written as {kind} does not come back")
    report.summary = f"cv2 {cv2.__version__}, headless"


if __name__ == "__main__":
    main(check)
