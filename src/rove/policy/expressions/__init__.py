"""The expressions of rules: a small boolean language over named facts about a URL or a page.

`tokens` splits a text, `syntax` makes a tree of it, `facts` knows the names and their types, `pattern` wraps the
regular expressions, and `expression` checks the types and turns the tree into closures.
"""
