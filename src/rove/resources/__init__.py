"""What a process takes from its machine: memory, open files, the interpreter's settings."""
