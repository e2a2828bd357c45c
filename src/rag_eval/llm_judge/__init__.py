"""Ask a language model to judge answers, and measure how far people agree with it. Never part of scoring."""
