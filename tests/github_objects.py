"""Whole objects of GitHub's REST API, with every field that its description requires; the fake hands them out."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

HTML = "https://github.test"
_LOGIN_LINKS = {
    "followers": "followers",
    "following": "following{/other_user}",
    "gists": "gists{/gist_id}",
    "starred": "starred{/owner}{/repo}",
    "subscriptions": "subscriptions",
    "organizations": "orgs",
    "repos": "repos",
    "events": "events{/privacy}",
    "received_events": "received_events",
}
_REPOSITORY_LINKS = (
    "archive assignees blobs branches clone collaborators comments commits compare contents contributors deployments "
    "downloads events forks git git_commits git_refs git_tags hooks issue_comment issue_events issues keys labels "
    "languages merges milestones notifications pulls releases ssh stargazers statuses subscribers subscription svn "
    "tags teams trees"
)


def error(message: str, status: int) -> dict[str, object]:
    return {"message": message, "documentation_url": "https://docs.github.test/rest", "status": str(status)}


def user(login: str) -> dict[str, Any]:
    name = quote(login)  # brackets, as bots have them, are no part of an address
    api = f"https://api.github.test/users/{name}"
    links = {f"{name}_url": f"{api}/{rest}" for name, rest in _LOGIN_LINKS.items()}
    return {
        **links,
        "login": login,
        "id": sum(login.encode()),
        "node_id": "MDQ6VXNlcjE=",
        "avatar_url": f"{HTML}/avatars/{name}",
        "gravatar_id": "",
        "url": api,
        "html_url": f"{HTML}/{name}",
        "type": "Bot" if login.endswith("[bot]") else "User",
        "site_admin": False,
    }


PRIVATE: dict[str, Any] = {
    **dict.fromkeys(("name", "company", "blog", "location", "email", "hireable", "bio"), None),
    "blog": "",
    **dict.fromkeys(("public_repos", "public_gists", "followers", "following"), 0),
    "created_at": "2020-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z",
}


def check_run(repository: str, check_id: int, content: dict[str, Any]) -> dict[str, Any]:
    url = f"https://api.github.test/repos/{repository}/check-runs/{check_id}"
    page = f"{HTML}/{repository}/runs/{check_id}"
    output = content["output"]
    return {
        "id": check_id,
        "node_id": "CR_1",
        "name": content["name"],
        "head_sha": content["head_sha"],
        "external_id": content.get("external_id", ""),
        "url": url,
        "html_url": page,
        "details_url": content.get("details_url", page),
        "status": content["status"],
        "conclusion": content["conclusion"],
        "started_at": "2026-01-01T00:00:00Z",
        "completed_at": "2026-01-01T00:00:00Z",
        "output": {
            "title": output["title"],
            "summary": output["summary"],
            "text": None,
            "annotations_count": len(output["annotations"]),
            "annotations_url": f"{url}/annotations",
        },
        "check_suite": {"id": 5},
        "app": None,
        "pull_requests": [],
    }


def comment(repository: str, number: int, comment_id: int, body: str, author: str) -> dict[str, Any]:
    api, page = f"https://api.github.test/repos/{repository}", f"{HTML}/{repository}/pull/{number}"
    return {
        "id": comment_id,
        "node_id": f"IC_{comment_id}",
        "url": f"{api}/issues/comments/{comment_id}",
        "html_url": f"{page}#issuecomment-{comment_id}",
        "issue_url": f"{api}/issues/{number}",
        "body": body,
        "user": user(author),
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "author_association": "NONE",
        "performed_via_github_app": None,
        "reactions": _reactions(f"{api}/issues/comments/{comment_id}/reactions"),
    }


def _reactions(url: str) -> dict[str, Any]:
    kinds = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")
    return {"url": url, "total_count": 0, **dict.fromkeys(kinds, 0)}


def review(repository: str, number: int, review_id: int, login: str, commit: str, state: str) -> dict[str, Any]:
    page = f"{HTML}/{repository}/pull/{number}#pullrequestreview-{review_id}"
    pull = f"https://api.github.test/repos/{repository}/pulls/{number}"
    return {
        "id": review_id,
        "node_id": f"PRR_{review_id}",
        "user": user(login),
        "body": "",
        "state": state,
        "html_url": page,
        "pull_request_url": pull,
        "_links": {"html": {"href": page}, "pull_request": {"href": pull}},
        "submitted_at": "2026-01-01T00:00:00Z",
        "commit_id": commit,
        "author_association": "MEMBER",
    }


def repository(full_name: str, default_branch: str) -> dict[str, Any]:
    """What is told of a repository when it is asked for by itself."""
    api, page = f"https://api.github.test/repos/{full_name}", f"{HTML}/{full_name}"
    more = {"clone_url": page, "git_url": page, "ssh_url": page, "svn_url": page, "trees_url": f"{api}/git/trees"}
    counts = dict.fromkeys(("network_count", "subscribers_count"), 0)
    return {
        **_repository(full_name),
        **more,
        **counts,
        "has_discussions": False,
        "license": None,
        "default_branch": default_branch,
    }


def git_commit(repository: str, item: dict[str, Any]) -> dict[str, Any]:
    """A commit as git has it; ``item`` holds sha, tree, parents, author, committer and message."""
    api = f"https://api.github.test/repos/{repository}/git"
    links = {kind: f"{api}/{kind}/" for kind in ("commits", "trees")}
    parents = [
        {"sha": sha, "url": links["commits"] + sha, "html_url": links["commits"] + sha} for sha in item["parents"]
    ]
    unsigned = {"verified": False, "reason": "unsigned", **dict.fromkeys(("signature", "payload", "verified_at"))}
    return {
        **{key: item[key] for key in ("sha", "author", "committer", "message")},
        "node_id": "C_1",
        "url": links["commits"] + item["sha"],
        "html_url": f"{HTML}/{repository}/commit/{item['sha']}",
        "tree": {"sha": item["tree"], "url": links["trees"] + item["tree"]},
        "parents": parents,
        "verification": unsigned,
    }


def commit(repository: str, item: dict[str, Any], login: str | None) -> dict[str, Any]:
    """A commit as lists and comparisons show it, with the account of its author."""
    git, api = git_commit(repository, item), f"https://api.github.test/repos/{repository}/commits/{item['sha']}"
    within = {key: git[key] for key in ("author", "committer", "message", "tree", "url", "verification")}
    account = user(login) if login else None
    return {
        **{key: git[key] for key in ("sha", "node_id", "html_url", "parents")},
        "url": api,
        "comments_url": f"{api}/comments",
        "commit": {**within, "comment_count": 0},
        "author": account,
        "committer": account,
    }


def tree(repository: str, sha: str, rows: list[tuple[str, str, str, str]]) -> dict[str, Any]:
    """A folder; ``rows`` are (mode, type, sha, name)."""
    api = f"https://api.github.test/repos/{repository}/git"
    entries = [
        {"path": path, "mode": mode, "type": kind, "sha": name, "url": f"{api}/{kind}s/{name}"}
        for mode, kind, name, path in rows
    ]
    return {"sha": sha, "url": f"{api}/trees/{sha}", "tree": entries, "truncated": False}


def comparison(
    repository: str, base: dict[str, Any], fork: dict[str, Any], commits: list[dict[str, Any]]
) -> dict[str, Any]:
    page = f"{HTML}/{repository}/compare/a...b"
    links = ("html_url", "permalink_url", "diff_url", "patch_url")
    return {
        "url": f"https://api.github.test/repos/{repository}/compare/a...b",
        **dict.fromkeys(links, page),
        "base_commit": base,
        "merge_base_commit": fork,
        "status": "ahead",
        "ahead_by": len(commits),
        "behind_by": 0,
        "total_commits": len(commits),
        "commits": commits,
        "files": [],
    }


def _repository(full_name: str) -> dict[str, Any]:
    owner, name = full_name.split("/")
    api = f"https://api.github.test/repos/{full_name}"
    counts = (
        "forks",
        "forks_count",
        "open_issues",
        "open_issues_count",
        "stargazers_count",
        "watchers",
        "watchers_count",
        "size",
    )
    switches = (
        "fork",
        "private",
        "archived",
        "disabled",
        "has_downloads",
        "has_issues",
        "has_projects",
        "has_wiki",
        "has_pages",
    )
    return {
        **{f"{link}_url": f"{api}/{link}" for link in _REPOSITORY_LINKS.split()},
        **dict.fromkeys(counts, 0),
        **dict.fromkeys(switches, False),
        **dict.fromkeys(("description", "homepage", "language", "license", "mirror_url")),
        **dict.fromkeys(("created_at", "updated_at", "pushed_at"), "2026-01-01T00:00:00Z"),
        "id": sum(full_name.encode()),
        "node_id": "R_1",
        "name": name,
        "full_name": full_name,
        "owner": user(owner),
        "url": api,
        "html_url": f"{HTML}/{full_name}",
        "default_branch": "main",
    }


def _branch(repository: str, ref: str, sha: str) -> dict[str, Any]:
    owner = repository.split("/")[0]
    return {"label": f"{owner}:{ref}", "ref": ref, "sha": sha, "repo": _repository(repository), "user": user(owner)}


def pull(repository: str, number: int, head: str, base: str, fork: str) -> dict[str, Any]:
    api, page = f"https://api.github.test/repos/{repository}", f"{HTML}/{repository}/pull/{number}"
    pull, issue = f"{api}/pulls/{number}", f"{api}/issues/{number}"
    addresses = {
        "url": pull,
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "issue_url": issue,
        "commits_url": f"{pull}/commits",
        "review_comments_url": f"{pull}/comments",
        "review_comment_url": f"{api}/pulls/comments{{/number}}",
        "comments_url": f"{issue}/comments",
        "statuses_url": f"{api}/statuses/{head}",
    }
    names = ("comments", "commits", "statuses", "review_comments", "review_comment")
    links = {name: {"href": addresses[f"{name}_url"]} for name in names}
    return {
        **addresses,
        "_links": {**links, "self": {"href": pull}, "html": {"href": page}, "issue": {"href": issue}},
        "id": number,
        "node_id": f"PR_{number}",
        "number": number,
        "state": "open",
        "locked": False,
        "title": "A change",
        "user": user("octocat"),
        "body": None,
        "labels": [],
        "milestone": None,
        **dict.fromkeys(
            ("assignee", "merged_by", "auto_merge", "merge_commit_sha", "closed_at", "merged_at", "mergeable")
        ),
        **dict.fromkeys(("created_at", "updated_at"), "2026-01-01T00:00:00Z"),
        "head": _branch(fork, "change", head),
        "base": _branch(repository, "main", base),
        "author_association": "CONTRIBUTOR",
        "draft": False,
        "merged": False,
        "mergeable_state": "unknown",
        "maintainer_can_modify": False,
        **dict.fromkeys(("comments", "review_comments", "commits", "additions", "deletions", "changed_files"), 1),
    }
