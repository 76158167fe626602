"""The frontier decides which domain may be visited when, and which of its URLs are fetched."""
