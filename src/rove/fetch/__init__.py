"""Getting pages: names resolved, addresses checked, bytes bounded, every ending an outcome."""
