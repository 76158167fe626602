"""The small web: a deterministic web on one port of this machine, for the demo and the tests."""
