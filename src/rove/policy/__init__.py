"""Pure decisions: numbers and records in, decisions out, no I/O."""
