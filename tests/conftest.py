import pytest

import depth  # noqa: F401 - loads the Hypothesis profile
from fake_github import FakeGitHub
from project import Project, apart
from seams import main
from sshkeys import Keys


@pytest.fixture
def fake():
    """A GitHub of our own, with the pull request 2."""
    with FakeGitHub().serving() as served:
        served.add_pull(2, "1" * 40, "2" * 40)
        yield served


@pytest.fixture(scope="session")
def begun(tmp_path_factory):
    """The repository that each test of ``project`` copies: gates, gold and traces on main."""
    with pytest.MonkeyPatch.context() as patch:
        apart(patch)
        yield Project.made(tmp_path_factory.mktemp("begun") / "repo")


@pytest.fixture
def project(begun, tmp_path, monkeypatch):
    """A copy of the repository ``begun``, in the current folder."""
    apart(monkeypatch)
    copy = begun.copied(tmp_path / "repo")
    monkeypatch.chdir(copy.path)
    return copy


@pytest.fixture
def command(capsys):
    """Run `rag-eval` in this process: exit code, stdout, stderr."""

    def run(*words):
        try:
            code = main([str(word) for word in words])
        except SystemExit as left:  # argparse's way out
            code = left.code
        return (code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def keys(tmp_path_factory):
    """SSH keys by name."""
    return Keys(tmp_path_factory.mktemp("keys"))
