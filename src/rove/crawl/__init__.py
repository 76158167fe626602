"""The work of one crawling process: loop.py is the place to start reading."""
