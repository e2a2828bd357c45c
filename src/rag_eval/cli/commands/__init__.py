"""The commands: ``run`` and ``add_arguments`` of each, which the docstring of :mod:`rag_eval.cli.parser` describes."""
