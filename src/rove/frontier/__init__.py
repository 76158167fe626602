"""The frontier: which domain may be visited when, and what is to be fetched there."""
