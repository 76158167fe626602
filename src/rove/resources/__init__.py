"""The resources of a process: memory, open files, caches, and the settings of the interpreter."""
