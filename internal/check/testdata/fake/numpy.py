"""A stand-in for NumPy: lists of lists."""

from fakes import fault, told

fault("import numpy")
__version__ = told("numpy version", "1.26.4")
float32, uint8 = float, int


class Array:
    def __init__(self, rows):
        self.rows = rows

    @property
    def T(self):
        return Array([list(row) for row in zip(*self.rows)])

    def reshape(self, *shape):
        return Array([self.rows[0][i * shape[1]:(i + 1) * shape[1]] for i in range(shape[0])])

    def __getitem__(self, at):
        return self.rows[at[0]][at[1]]

    def __setitem__(self, at, value):
        if isinstance(at[0], int):
            self.rows[at[0]][at[1]] = value

    def __matmul__(self, other):
        return Array([[sum(a * b for a, b in zip(row, column)) for column in other.T.rows] for row in self.rows])

    def numpy(self):
        return self


def arange(n, dtype):
    return Array([[dtype(i) for i in range(n)]])


def array_equal(a, b):
    return a.rows == b.rows


def zeros(shape, dtype):
    return Picture(shape)


class Picture:
    def __init__(self, shape, red=0):
        self.shape, self.red = shape, red

    def __setitem__(self, at, value):
        self.red = value

    def __getitem__(self, at):
        return self.red
