"""How a crawl is prepared, started, watched and stopped."""
