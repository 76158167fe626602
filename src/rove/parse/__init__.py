"""Reading pages: bytes to characters, characters to title, text and links."""
