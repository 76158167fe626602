"""The rows of both databases as records, and back: what a query takes or returns is mapped here, once."""
