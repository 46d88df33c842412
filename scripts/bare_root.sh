#!/bin/bash
# Passes `make quick` where a newcomer does: in a bare Debian with nothing but python3-venv, make and
# git, as root in a /root of mode 0700, and as a user. Needs root and mmdebstrap; packages of Python
# are those of this clone's .venv. Usage: bare_root.sh [ARGUMENTS OF PYTEST...]
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "skipped: needs root"; exit 0; }
command -v mmdebstrap >/dev/null || { echo "skipped: needs mmdebstrap (apt-get install mmdebstrap)"; exit 0; }
packages=$(.venv/bin/python -c 'import pytest, os; print(os.path.dirname(os.path.dirname(pytest.__file__)))')
root=build/bare-root
mkdir -p build
[ -d "$root/root" ] || mmdebstrap --quiet --variant=minbase \
  --include=python3-venv,make,git,ca-certificates,procps bookworm "$root"
root=$(realpath "$root")
python=$(chroot "$root" python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
case $packages in
*"/$python/"*) ;;
*) echo "skipped: .venv is not of Debian's $python" && exit 0 ;;
esac
chmod 700 "$root/root"
mkdir -p "$root/packages"
chroot "$root" id newcomer >/dev/null 2>&1 || chroot "$root" useradd --create-home newcomer

cat >"$root/inside.sh" <<'END'
#!/bin/bash
set -e
cd && rm -rf relayd && mkdir relayd && cd relayd && tar xf /clone.tar && git init -q .
python3 -m venv --without-pip .venv
printf '%s\n/packages\n' "$PWD" >"$(echo .venv/lib/python3*/site-packages)/all.pth"
touch .venv/bin/.runtime .venv/bin/.dev
printf '#!%s\nimport sys\nfrom relayd.__main__ import main\nsys.exit(main())\n' \
  "$PWD/.venv/bin/python" >.venv/bin/relayd
chmod +x .venv/bin/relayd
PYTEST_ADDOPTS="$*" make quick
END
chmod 755 "$root/inside.sh"
git ls-files -z | tar c --null --files-from=- --file "$root/clone.tar"
failed=0
for user in root newcomer; do
  echo "As $user:"
  unshare --mount --pid --fork bash -ec "
    mount --bind '$packages' '$root/packages'
    mount -t proc proc '$root/proc'
    mount --rbind /dev '$root/dev'
    exec chroot '$root' su - $user -c '/inside.sh $*'" || failed=1
done
exit $failed
