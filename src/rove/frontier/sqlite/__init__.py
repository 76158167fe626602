"""The frontier in a SQLite file.

The functions of this package that take a database without awaiting anything run in its thread, inside a transaction.
"""
