"""What the machine has to give: memory, open files, the interpreter's settings."""
