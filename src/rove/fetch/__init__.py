"""Fetches pages: resolves names, checks addresses, limits time and bytes, and turns every ending into an outcome."""
