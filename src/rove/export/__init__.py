"""Data out: documents, indexes and archives in the formats that other programs read."""
