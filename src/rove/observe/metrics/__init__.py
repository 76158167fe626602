"""The endpoint of `--metrics`: what this machine's part of a crawl does, for Prometheus."""
