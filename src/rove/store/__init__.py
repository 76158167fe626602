"""Keeping pages: WARC files that are durable before anything says so."""
