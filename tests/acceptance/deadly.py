"""A page that kills the process that parses it, as a bug in the parser would let it."""

from __future__ import annotations

DEADLY_TEXT = "a deadly page"

DEADLY_PAGES = """\
import builtins, os, signal, sys

load = builtins.__import__

def load_and_patch(*arguments, **named):
    module = load(*arguments, **named)
    parser = sys.modules.get("rove.parse.whatwg")
    if hasattr(parser, "parse") and not hasattr(parser, "is_patched"):
        parser.is_patched, parse = True, parser.parse

        def parse_or_die(text):
            if "a deadly page" in text:
                os.kill(os.getpid(), signal.SIGSEGV)
            return parse(text)

        parser.parse = parse_or_die
    return module

builtins.__import__ = load_and_patch
"""
"""Code for the start of every Python process (interruption.py): its parser crashes on DEADLY_TEXT."""
