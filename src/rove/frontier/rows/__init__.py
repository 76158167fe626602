"""Maps the rows of both databases to records and back, once for both."""
