"""Attacks on other sites and on the crawl itself, each measured from the outside."""
