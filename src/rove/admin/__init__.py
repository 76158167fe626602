"""Commands that change a crawl from outside: exclude and include, purge, move."""
