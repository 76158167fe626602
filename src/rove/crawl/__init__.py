"""The work of one crawling process. Start reading in loop.py."""
