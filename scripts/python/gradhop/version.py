"""The version of the package, which is that of the program inside it."""

__version__ = "0.1.0"
