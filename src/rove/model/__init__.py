"""The records that flow through a crawl. Every other package speaks in these."""
