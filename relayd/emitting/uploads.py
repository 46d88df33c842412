"""What scripts that upload to an object store share: lanes, proxies on relays, shares of files.

A relay passes on what a tool sends through ``HTTPS_PROXY``: an HTTP proxy that takes CONNECT
(RFC 9110) ends the tool's TCP connection and opens its own, so TCP is split, and TLS still runs
from end to end. All four tools honour the variable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relayd.emitting.lanes import Emission, Lane
from relayd.emitting.text import addresses, by_number, header, lane_words, script

PROXY_PORT = 3128  # registered for it, and what squid listens on

_TEMPORARY = """\
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
trap 'exit 1' INT TERM
"""
_PROXY = (
    "Relay VMs run a proxy that takes CONNECT to port 443, such as tinyproxy or squid, open to the "
    "sources alone. Names of private addresses go to NO_PROXY."
)
PART_NOTE = (
    "Parts are as large as one object of the whole share would need them. Smaller objects do with "
    "smaller ones, which take less memory: set PART."
)
_SHARES = (
    "Each lane sends its share: files by size, largest first, to the lane that is least filled. "
    "Every lane computes the same shares from the same files; a file is not cut over lanes. Names "
    "with line ends are not handled."
)
# `ls -n` has eight fields before the name (POSIX), which `find` begins with `./`.
_LIST = """\
folder=$(CDPATH='' cd "$SOURCE" && pwd)
list=$temporary/list
(cd "$folder" && find . -type f -exec env LC_ALL=C ls -ln {} +) |
  awk '{ size = $5; for (i = 0; i < 8; i++) sub(/^[^ ]+ +/, ""); print size, $0 }' |
  LC_ALL=C sort -k1,1nr -k2 |
  awk -v lane="$LANE" -v shares="$shares" '
    BEGIN { lanes = split(shares, share, " ") }
    {
      best = 1
      for (i = 2; i <= lanes; i++)
        if ((filled[i] + $1) / share[i] < (filled[best] + $1) / share[best]) best = i
      filled[best] += $1
      if (best == lane) { sub(/^[0-9]+ \\.\\//, ""); print }
    }' > "$list"
if ! [ -s "$list" ]; then
  echo "lane $LANE has no files" >&2
  exit 0
fi
"""


def upload(
    emission: Emission,
    title: str,
    settings: Callable[[Lane], Sequence[str]],
    whole: str,
    listed: str,
    destination: str,
    notes: Sequence[str] = (),
    *,
    temporary: bool = False,
) -> str:
    """Return a script that uploads a folder over a plan's lanes.

    Parameters
    ----------
    emission : Emission
        With lanes that end at the store.
    title : str
    settings : callable
        From a lane to lines that set the tool up for it.
    whole : str
        Lines that upload everything.
    listed : str
        Lines that upload the files that ``$list`` names, relative to ``$folder``.
    destination : str
        What to say of ``DESTINATION``.
    notes : sequence of str
    temporary : bool
        Whether `settings` or `whole` write to the folder ``$temporary``.
    """
    several = len(emission.lanes) > 1
    said = [*notes]
    if emission.relays:
        said.append(_PROXY)
    if several:
        said.append(_SHARES)
        said += [lane_words(lane, to_vms=False) for lane in emission.lanes]
    body = f': "${{SOURCE:?a folder}}"\n: "${{DESTINATION:?{destination}}}"\n'
    if several or temporary:
        body += _TEMPORARY
    choices = []
    for lane in emission.lanes:
        words = f"{lane.regions}, from {lane.src.words}"
        choices.append((words, [*_proxy(lane), *settings(lane)]))
    body += by_number("LANE", "which lane to send, each from its source VM", choices)
    if several:
        body += f'shares="{" ".join(f"{lane.share:.6g}" for lane in emission.lanes)}"\n{_LIST}'
    body += listed if several else whole
    return script(header(emission, title, said), body)


def _proxy(lane: Lane) -> list[str]:
    if lane.relay is None:
        return []
    proxy = f'"http://${lane.relay.variable}:${{PROXY_PORT:-{PROXY_PORT}}}"'
    return [*addresses([lane.relay]).splitlines(), f"export HTTPS_PROXY={proxy}"]
