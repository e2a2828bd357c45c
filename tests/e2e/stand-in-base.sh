#!/usr/bin/env bash
# Puts an image under the name of an official Python base, made of what this machine has, where no image registry answers:
# a minimal Debian of this machine's release with this machine's CPython in /usr/local.
# It is good enough to build and run the action's Dockerfile; it is not the image that users get.
# usage: stand-in-base.sh python:3.12-slim [PYTHON]
# shellcheck disable=SC1091,SC2016 # the hooks below expand in the shell of mmdebstrap
set -euo pipefail

tag=${1:?usage: stand-in-base.sh TAG [PYTHON]}
wanted=$(sed -E 's/^[^:]*:([0-9]+\.[0-9]+).*/\1/' <<<"$tag")

find_python() {
  local candidate
  for candidate in "${2:-}" "python$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python3; do
    [ -n "$candidate" ] && "$candidate" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1' or sys.base_prefix == '/usr')" \
      2>/dev/null && { echo "$candidate"; return; }
  done
  echo "stand-in-base.sh: no CPython $1 outside of /usr was found (pyenv has them): name one as the second argument" >&2
  return 1
}

# The Debian packages that own the libraries which the interpreter and its compiled modules link to; Tk is not needed.
library_packages() {
  find "$1/bin/python$wanted" "$1/lib/python$wanted/lib-dynload" -type f ! -name '_tkinter*' -print0 |
    xargs -0 ldd 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\/(usr\/)?lib\// {print $3}' | sort -u | xargs -n1 realpath |
    sed 's,^.*/,*/,' | xargs dpkg -S 2>/dev/null | cut -d: -f1 | sort -u | grep -vE '^lib(x|tcl|tk)|-(dev|dbg)$' | paste -sd,
}

python=$(find_python "$wanted" "${2:-}")
prefix=$("$python" -c 'import sys; print(sys.base_prefix)')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

tar -C "$prefix" -cf "$work/python.tar" --exclude='__pycache__' --exclude='*.a' --exclude="lib/python$wanted/test" \
  --exclude="lib/python$wanted/site-packages/*" --exclude='*tkinter*' --exclude='idlelib' bin lib
# Behind a proxy with a certificate of its own, pip in the image must trust what this machine trusts.
mkdir -p "$work/etc/ssl/certs"
cp -L "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$work/etc/ssl/certs/ca-certificates.crt"
printf '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n' >"$work/etc/pip.conf"

sources=/etc/apt/sources.list.d/debian.sources
[ -s "$sources" ] || sources=/etc/apt/sources.list
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
mmdebstrap --quiet --variant=minbase --mode=root --include="ca-certificates,netbase,tzdata,$(library_packages "$prefix")" \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*.bin' \
  --customize-hook="tar-in $work/python.tar /usr/local" \
  --customize-hook="sync-in $work/etc /etc" \
  --customize-hook='chroot "$1" ldconfig' \
  --customize-hook="chroot \"\$1\" sh -ec 'cd /usr/local/bin; rm -f pip* idle* 2to3* pydoc*; ln -sf python$wanted python3; ln -sf python3 python'" \
  --customize-hook='chroot "$1" /usr/local/bin/python3 -m ensurepip --upgrade >/dev/null 2>&1; ln -sf pip3 "$1/usr/local/bin/pip"' \
  "$release" "$work/base.tar" "$sources"
podman import --quiet --change 'ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin' --change 'ENV LANG=C.UTF-8' \
  --change 'CMD ["python3"]' "$work/base.tar" "docker.io/library/$tag"
