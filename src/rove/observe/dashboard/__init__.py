"""A page in the browser that shows a crawl: a small server, a JSON API and one HTML page."""
