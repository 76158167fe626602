"""Copies a stopped crawl from SQLite to PostgreSQL. Start reading at mover.py.

The tables are copied in slices, in the order of their keys. Each slice is written in one transaction with a bookmark
that records how far the move has got, so a move can be killed at any moment and resumed. The settings are written last:
until then the target schema holds no crawl.

Times are points on the crawl's clock. Each is converted from one clock to the other, so that a delay ends when it would
have ended, however long the move takes.

This package copies rows and knows nothing about data directories. `rove.admin.move` locks the data directory around it
and points the directory at the copy afterwards.
"""
