"""The commands: each module has a docstring, ``EXAMPLES``, ``add_arguments(parser)`` and ``run(arguments) -> int``."""
