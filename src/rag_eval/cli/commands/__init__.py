"""One module a command: its docstring, ``EXAMPLES``, ``add_arguments(parser)`` and ``run(arguments) -> exit code``."""
