"""The commands: each module has a docstring, ``EXAMPLES``, ``add_arguments(parser)`` and ``run(arguments) -> int``.

A command with sub-commands lists them in ``COMMANDS``; without ``run`` it needs one of them.
"""
