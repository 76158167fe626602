"""A crawl over time: the sampler, the history, and how they are shown."""
