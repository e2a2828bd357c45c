"""Git without porcelain: objects of a repository, commits and snapshots of its files."""
