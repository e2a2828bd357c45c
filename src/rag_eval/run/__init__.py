"""One run, step by step: load the inputs, score the traces, check the run, build its report."""
