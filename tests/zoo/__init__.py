"""Servers that misbehave, each in its own way, and the expected outcome of crawling each."""
