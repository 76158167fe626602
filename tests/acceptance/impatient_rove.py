"""Runs rove with other rules for outages: `python -m tests.acceptance.impatient_rove RULES COMMAND...`.

RULES is a JSON object with fields of OutageRules. Everything else is the real command.
"""

from __future__ import annotations

import json
import sys

from rove.cli import rove
from rove.policy.outage import OutageRules

if __name__ == "__main__":
    rules = OutageRules(**json.loads(sys.argv[1]))
    sys.exit(rove.main(sys.argv[2:], prog_name="rove", obj=rules, standalone_mode=False))
