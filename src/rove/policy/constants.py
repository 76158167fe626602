"""The numbers that make a crawl polite."""

from __future__ import annotations

DAY = 86_400.0
DEFAULT_DELAY = 70.0
"""Default minimum seconds between two visits to one domain."""
LEAST_DELAY = 0.1
"""Seconds assumed between two visits when the delay is 0, so that waits and budgets stay finite."""
VISIT_BUDGET = 180.0
"""Maximum seconds of a visit from its claim on: waiting in the process, robots.txt and all redirects included."""
MAX_REQUESTS_PER_VISIT = 8
DEFAULT_REDIRECT_HOPS = 3
"""Redirects inside a domain that a visit follows immediately."""
DEFAULT_PER_IP = 10
"""Visits to one IP address at a time."""
DEFAULT_PER_IP_RATE = 10.0
"""Visits to one IP address that begin in a second."""
DEFAULT_MAX_LINKS = 2_000
"""Links taken from one page."""
DEFAULT_MAX_PARSED_SIZE = 2 << 20
"""Bytes that are read of one page. The HTML parser cannot be interrupted, so this bounds the time that it takes."""
MAX_ROBOTS_HOPS = 5
"""Redirects followed for one robots.txt; RFC 9309, section 2.3.1.2, asks for at least five."""
MAX_REDIRECT_CHAIN = 20
"""Redirects in a row, over all visits, after which a chain is abandoned."""
ROBOTS_VALID_SECONDS = DAY
"""RFC 9309, section 2.4: a copy of a robots.txt should not be used for longer than a day."""
OVERLOADED = frozenset({429, 503})
"""Statuses of a server that receives too many requests. Both may carry a Retry-After."""
