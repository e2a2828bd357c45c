"""The commands, one module each: docstring, ``EXAMPLES``, ``add_arguments(parser)``, ``run(arguments) -> exit code``."""
