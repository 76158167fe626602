"""How figures, times and foreign text are written and read: for people, for logs and for programs."""
