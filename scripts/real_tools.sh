#!/bin/sh
# Installs what the tests of measuring run for real, where this user may; never fails, because a
# test that misses a tool skips itself and says so.
set -u
missing=
need() { PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
need iperf3 iperf3
need nuttcp nuttcp
need ping iputils-ping
need traceroute traceroute
need sshd openssh-server
need haproxy haproxy
need socat socat
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q update >/dev/null 2>&1
    # shellcheck disable=SC2086
    apt-get -q -y --no-install-recommends install $missing >/dev/null 2>&1 && exit 0
fi
echo "Not installed, so tests that need them are skipped:$missing" >&2
echo "On Debian: apt-get install$missing" >&2
