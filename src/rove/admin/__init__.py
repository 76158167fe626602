"""Commands that change a crawl from outside: exclude, purge, move."""
