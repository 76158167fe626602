"""Servers that misbehave, each in a way of its own, and what a crawl should make of each."""
