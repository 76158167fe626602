"""The frontier in PostgreSQL. Functions that take a Session run inside a transaction of its connection."""
