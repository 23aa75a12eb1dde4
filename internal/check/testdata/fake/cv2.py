"""A stand-in for OpenCV."""

from fakes import fault, told
from numpy import Picture

fault("import cv2")
__version__ = "4.10.0"
IMREAD_COLOR = 1


def getBuildInformation():
    return "\nGeneral configuration for OpenCV\n  GUI:                           " + told("gui", "NONE") + "\n    VTK support:  NO\n"


def imencode(kind, picture):
    return kind not in told("no codec", []), picture


def imdecode(data, how):
    return Picture(data.shape, told("red", data.red))
