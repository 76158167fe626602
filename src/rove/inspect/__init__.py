"""Reads a crawl, running or not, for status, nodes, pages, show, export, explain, report and audit."""
