"""Processes on hosts: started under a lease, and always ended.

Closing an SSH channel does not end the processes behind it, and a controller that is killed ends
none at all. So every tool runs

- under ``timeout``, which ends it soon after its test should have ended, in any case;
- with a lease: a small file on the host that names the process by its id, start time and boot.
  At the next contact, the controller finds its leases on the host, ends their processes, and
  removes the files.

A process that must not outlive its controller even for a minute is tethered, too: it ends, and its
lease goes, as soon as its SSH channel closes or nothing has come through it for a while.

Settings of the system that a campaign was asked to change are kept on record with the leases, and
restored at the same moments.

The scripts are fixed; everything that varies reaches them as arguments. They are POSIX shell, so
that they run wherever there is a ``sh`` (dash, bash, BusyBox).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

LEASE_FAILED = 121
"""Exit code where a lease can't be written; nothing was begun."""
TIMED_OUT = (124, 137)
NOT_FOUND = (126, 127)

# A folder in /tmp that another user made, or a link to elsewhere, is not to be trusted.
_FOLDER = """\
umask 077
dir=/tmp/relayd-$(id -u)
usable() { [ -d "$dir" ] && [ ! -L "$dir" ] && [ -O "$dir" ]; }
# 22nd field of /proc/PID/stat; the second may hold blanks and brackets.
put() { # value, file under /proc/sys
    { printf '%s\\n' "$1" > "$2"; } 2>/dev/null || printf '%s\\n' "$1" |
        sudo -n tee "$2" >/dev/null 2>&1
}
started() { set -- ${1##*) }; [ "$1" = Z ] || echo "${20}"; }
read -r boot < /proc/sys/kernel/random/boot_id
# $1 file in the folder, $2 its line. Another process may remove the folder when it is empty.
keep() {
    tries=0
    until mkdir "$dir" 2>/dev/null; usable && { printf '%s\\n' "$2" > "$1"; } 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -lt 20 ] && continue
        if usable; then
            rm -f "$1"; echo "relayd: $1 can't be written" >&2
        else
            echo "relayd: $dir is not a folder of this user" >&2
        fi
        exit 121
    done
}
"""

# $1 name of the lease, $2 limit in seconds, the rest: the command. The shell becomes the command,
# so that its id is known before it begins.
_BEGIN = (
    _FOLDER
    + """\
lease=$dir/$1 limit=$2
shift 2
start=$(started "$(cat /proc/$$/stat)")
keep "$lease" "$$ $start $boot $(($(date +%s) + limit + 60))"
LC_ALL=C PATH=$PATH:/usr/sbin:/sbin RELAYD_LEASE=$lease
export LC_ALL PATH RELAYD_LEASE
exec timeout -k 2 "$limit" "$@"
"""
)

# Runs under a lease, whose `timeout` leads the process group. $1 seconds of silence on standard
# input after which the controller counts as gone, the rest: the command. A closed channel is an
# end of input at once.
_TETHER = """\
silence=$1
shift
exec 3<&0 </dev/null
"$@" 3<&- &
child=$!
(
    while [ "$(timeout "$silence" head -c 1 <&3 2>/dev/null)" ]; do :; done
    trap '' TERM
    kill -TERM 0
    rm -f "$RELAYD_LEASE"
    rmdir "${RELAYD_LEASE%/*}" 2>/dev/null
    sleep 1
    kill -KILL 0
) &
watch=$!
exec 3<&-
wait "$child"
code=$?
kill "$watch" 2>/dev/null
exit "$code"
"""

# $1 how names of the leases to end begin. Prints how many processes were still there. Settings of
# the system are restored where all leases of a controller end.
_END = (
    _FOLDER
    + """\
usable || { echo 0; exit 0; }
now=$(date +%s) ended=0
same() { [ "$(started "$(cat "/proc/$1/stat" 2>/dev/null)")" = "$2" ]; }
for lease in "$dir"/*; do
    [ -f "$lease" ] && [ ! -L "$lease" ] || continue
    pid= start= of= expires=
    read -r pid start of expires < "$lease"
    case ${lease##*/} in
    "$1"*) ;;
    *)  # of another controller: only when its time is long over
        [ "${expires:-0}" -lt "$now" ] 2>/dev/null && rm -f "$lease"
        continue ;;
    esac
    case $pid$start in '' | *[!0-9]*) rm -f "$lease"; continue ;; esac
    if [ "$pid" -gt 1 ] && [ "$of" = "$boot" ] && same "$pid" "$start"; then
        ended=$((ended + 1))
        kill -TERM "-$pid" 2>/dev/null || kill -TERM "$pid" 2>/dev/null
        tries=0
        while same "$pid" "$start" && [ "$tries" -lt 20 ]; do
            sleep 0.05; tries=$((tries + 1))
        done
        same "$pid" "$start" && { kill -KILL "-$pid" || kill -KILL "$pid"; } 2>/dev/null
    fi
    rm -f "$lease"
done
# Settings of the system go back to what they were, unless someone has changed them since. A boot
# did that already.
record=$dir/.settings-$1
if [ -f "$record" ] && [ ! -L "$record" ]; then
    failed=
    while read -r of file before ours; do
        [ "$of" = "$boot" ] && [ "$(cat "$file")" = "$ours" ] || continue
        put "$before" "$file" || failed=yes
    done < "$record"
    [ "$failed" ] || rm -f "$record"
fi
rmdir "$dir" 2>/dev/null
echo "$ended"
"""
)

# $1 how names of this controller's leases begin, then files under /proc/sys and their new values.
# What was there is on record before anything changes. Sizes are only raised.
_CHANGE = (
    _FOLDER
    + """\
record=$dir/.settings-$1
shift
for other in "$dir"/.settings-*; do
    usable && [ -f "$other" ] || continue
    read -r of file before ours < "$other"
    [ "$of" = "$boot" ] || { rm -f "$other"; continue; }
    echo "another campaign has changed $file of this host" >&2; exit 1
done
changes=
while [ "$#" -ge 2 ]; do
    file=$1 ours=$2
    shift 2
    before=$(cat "$file") || exit 1
    case $before$ours in
    *[!0-9]*) [ "$before" != "$ours" ] || continue ;;
    *) [ "$before" -lt "$ours" ] || continue ;;
    esac
    changes="$changes${changes:+
}$boot $file $before $ours"
done
[ "$changes" ] || exit 0
keep "$record" "$changes"
while read -r of file before ours; do
    put "$ours" "$file" && [ "$(cat "$file")" = "$ours" ] || {
        echo "$file can't be set to $ours" >&2; exit 1; }
done < "$record"
"""
)

# $1 port in hexadecimal. Ends when something listens there, at most after five seconds.
_LISTENING = """\
tries=0
while [ "$tries" -lt 100 ]; do
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q ":$1 0*:0000 0A " && exit 0
    sleep 0.05; tries=$((tries + 1))
done
exit 1
"""


@dataclass(frozen=True, slots=True)
class Output:
    """The output of a command."""

    status: int  # exit code; negative if it ended by a signal
    stdout: bytes
    stderr: bytes

    @property
    def last_error_line(self) -> str:
        """The last line of its standard error, for messages."""
        lines = self.stderr.decode(errors="replace").strip().splitlines()
        return printable(lines[-1]) if lines else ""

    @property
    def error_text(self) -> str:
        """All of its standard error, as one line: some programs end with a mere "exiting"."""
        return printable(" ".join(self.stderr.decode(errors="replace").split()))


def printable(text: str) -> str:
    """Return text of a host or a library, fit for a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)[:200]


def leases_of(owner: str, host: str) -> str:
    """Return the beginning of the names of a controller's leases on one host.

    Two entries of a fleet file may be one machine, so the host's name is part of it.
    """
    return blake2b(f"{owner} {host}".encode(), digest_size=8).hexdigest() + "-"


def leased(lease: str, limit_s: float, command: Sequence[str]) -> list[str]:
    """Return the command that runs another under a lease and a time limit."""
    return ["sh", "-c", _BEGIN, "relayd", lease, str(max(1, round(limit_s))), *command]


def tethered(silence_s: int, command: Sequence[str]) -> list[str]:
    """Return the command that runs another for as long as its controller is there.

    To be run under a lease, with something coming through its standard input more often than
    once in so many seconds.
    """
    return ["sh", "-c", _TETHER, "relayd", str(silence_s), *command]


def end_leases(beginning: str) -> list[str]:
    """Return the command that ends the remaining processes of leases and removes these."""
    return ["sh", "-c", _END, "relayd", beginning]


def change_settings(beginning: str, sysctls: Mapping[str, str]) -> list[str]:
    """Return the command that changes settings of the system until :func:`end_leases`."""
    pairs = [w for name, v in sysctls.items() for w in (f"/proc/sys/{name.replace('.', '/')}", v)]
    return ["sh", "-c", _CHANGE, "relayd", beginning, *pairs]


def wait_for_listener(port: int) -> list[str]:
    """Return the command that waits until a TCP port is listened on."""
    return ["sh", "-c", _LISTENING, "relayd", f"{port:04X}"]


def remote_line(command: Sequence[str]) -> str:
    """Return an argument vector as the one line that SSH carries, quoted for a POSIX shell.

    Raises a ValueError if a word has a NUL byte.
    """
    if any("\0" in word for word in command):
        raise ValueError("a NUL byte can't be part of an argument")
    return shlex.join(command)
