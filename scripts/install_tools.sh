#!/bin/sh
# Installs the programs that tests drive, where that is possible without asking: as root, on a
# machine with apt. Says what is missing otherwise; those tests then say why they skip.
# Usage: install_tools.sh [lab]; `lab` stops at what an emulated WAN needs.
set -eu

missing=""
need() { # program, Debian package
  PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need ip iproute2
need sshd openssh-server
need ssh-keygen openssh-client
need iperf3 iperf3
need ping iputils-ping
if [ "${1:-}" != lab ]; then
  need iperf iperf
  need traceroute traceroute
  need haproxy haproxy
  need socat socat
  need hping3 hping3
  need busybox busybox
  # Debian keeps the server's programs apart from PATH, a folder for each version.
  PATH="$PATH:$(echo /usr/lib/postgresql/*/bin | tr ' ' ':')" need initdb postgresql
  need pgbouncer pgbouncer
  need java default-jre-headless
  need curl curl
  need rclone rclone
  need rrdtool rrdtool
  need shellcheck shellcheck
  need openssl openssl
  need chromium chromium
  need pgrep procps
  need zsh zsh
  need fish fish
  need promtool prometheus
fi

[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "Installing$missing"
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing; } >/dev/null 2>&1 && {
    # Debian starts it with the machine; tests start their own.
    case $missing in *prometheus*)
      for name in prometheus prometheus-node-exporter; do
        service $name stop
        update-rc.d $name disable
      done >/dev/null 2>&1 ;;
    esac
    exit 0
  }
  echo "Could not install$missing." >&2
fi
echo "What needs$missing cannot run (tests skip it): apt-get install -y$missing (as root)." >&2
