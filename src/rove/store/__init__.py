"""The page store: WARC files, their recovery after a crash, and purging."""
