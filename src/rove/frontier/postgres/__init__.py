"""The frontier in PostgreSQL."""
