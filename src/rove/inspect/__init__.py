"""What status, pages, show and export read out of a crawl, running or not."""
