"""Times rag-eval against its peers: whole processes in turn, numbers compared before a time counts. See __main__.py."""
