"""rove: a polite, fast, crash-proof broad web crawler."""

__version__ = "0.1.0"
