"""Names that people write for regions, and rules that select regions.

A region can be named by its id (``aws:us-east-1``), by its bare name where one provider has it
(``eastus``), by an alias (``us-east``), by an alias or city of one provider (``azure:sa``), by its
city (``Frankfurt``), or as bills and portals write it (``US East (N. Virginia)``, ``East US 2``).
Its provider may also stand before or after it (``aws Sao Paulo``, ``Frankfurt, Google``).
A zone (``us-east-1a``, ``europe-west1-b``, ``use1-az1``, ``eastus-1``) and usage on a bill of AWS
(``USE1-DataTransfer-Out-Bytes``) stand for their region. Case and accents do not matter.
A label of a node stands for its value (``topology.kubernetes.io/region=us-east-1``).
A bucket stands for the region that its URL states (``s3://bucket?region=us-east-1``), or for one
of the regions that an alias of its store lists (``gs://bucket?region=nam4``: ``gs-nam4``).
"""

from __future__ import annotations

import re  # what most names are found without
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from unicodedata import combining, normalize

from planner.model.catalogue import CONTINENTS, Catalogue, Region
from planner.model.errors import AmbiguousRegionError, InputError, UnknownRegionError

_OTHERS_SHOWN = 2
_ZONE = r"(?P<region>.*\d)-?[a-f]|(?P<code>.*)-az\d|(?P<azure>.*[a-z])-(?P<number>[123])"
_USAGE = "datatransfer|aws-|boxusage|natgateway|timedstorage|requests|ec2"
_COMPANIES = {"amazon": "aws", "google": "gcp", "microsoft": "azure"}
_WAYS = "-?(north|south|east|west|central|gov)"
_NEAR_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Resolution:
    """The region that a name stands for.

    Attributes
    ----------
    note : str
        One sentence that says what was chosen among what; ``""`` where there was no choice.
    name : str
        As a person wrote it.
    others : tuple of str
        The other regions that it fits, in the order of preference.
    bucket : str
        URL of the bucket that was named, such as ``s3://bucket/prefix``, without its region.
    """

    region_id: str
    note: str = ""
    name: str = ""
    others: tuple[str, ...] = ()
    bucket: str = ""


def resolve(
    name: str,
    catalogue: Catalogue,
    *,
    field: str = "region",
    known: Collection[str] = (),
    prefer_provider: str | None = None,
    preferred: Callable[[], Collection[str]] = tuple,
) -> Resolution:
    """Find the one region that a name stands for, as a person wrote it.

    Errors call it `field`, such as ``--src``. `known` are ids of regions that exist without being
    in the catalogue, such as measured ones. Of regions of several providers, those of
    `prefer_provider` go first: usually that of the transfer's other end, because traffic inside one
    cloud is cheaper; those that `preferred` returns, such as the fleet's, go before even these.

    Nothing with this name is an UnknownRegionError, which carries near matches; a bare name or a
    city that fits several regions is an AmbiguousRegionError where neither preference settles it.
    """
    text = name.strip()
    if "kubernetes.io/" in text:
        text = re.split("[=:]", text)[-1].strip()
    if text in catalogue.regions or text in known:
        return Resolution(text)
    if "://" in text:
        url, _, query = text.partition("?")
        bucket = bucket_of(url, field)
        given = _GIVEN.search(query)
        if not given:
            example = f"{url}?region={_EXAMPLES[bucket[:2]]}"
            remedy = f"Which region? Write {example}."
            raise InputError(field, "is a bucket, without its region", value=url, remedy=remedy)
        provider = STORES[bucket[:2]]
        named = given[1] if ":" in given[1] else f"{provider}:{given[1]}"
        if several := locations(text, catalogue):
            found = Resolution(several[0], others=several[1:])
        elif named.casefold() == "aws:auto":
            problem = "is a bucket of Cloudflare R2, whose region auto does not say where it is"
            remedy = "Add its place to a catalogue file, and name that region, such as r2:weur."
            raise InputError(field, problem, value=text, remedy=remedy)
        else:
            found = resolve(named, catalogue, field=field, known=known, preferred=preferred)
        if not found.region_id.startswith(f"{provider}:"):
            raise InputError(field, f"is a bucket of {provider} in another cloud", value=text)
        found = replace(found, name=text, bucket=bucket)
        return served(found, several[0], "the first of them") if several else found
    matches, ordered = _named(text, catalogue, known)
    if not matches:
        raise UnknownRegionError(field, name, _near(text, catalogue, known))
    if len(matches) == 1:
        return Resolution(matches[0])
    first = preferred()
    nearest = [m for m in matches if m in first] or matches
    nearest = [m for m in nearest if m.partition(":")[0] == prefer_provider] or nearest
    if not ordered and len(nearest) != 1:
        raise AmbiguousRegionError(field, name, nearest)
    others = tuple(m for m in matches if m != nearest[0])
    more = f" and {len(others) - _OTHERS_SHOWN} more" if others[_OTHERS_SHOWN:] else ""
    shown = f"{', '.join(others[:_OTHERS_SHOWN])}{more}"
    return Resolution(nearest[0], f"{text} is taken for {nearest[0]}, not {shown}.", text, others)


def locations(name: str, catalogue: Catalogue) -> tuple[str, ...]:
    """Return the ids of all regions that a bucket is in, if it is in several; else none."""
    store, _, path = name.strip().partition("://")
    given = _GIVEN.search(path.partition("?")[2])
    return _members(f"{store}-{_folded(given[1]).rpartition(':')[2]}", catalogue) if given else ()


def served(bucket: Resolution, region_id: str, why: str) -> Resolution:
    """Return a bucket that is in several regions as the one that serves it, and why that does."""
    others = tuple(r for r in (bucket.region_id, *bucket.others) if r != region_id)
    where = bucket.name.rpartition("region=")[2].partition("&")[0]
    note = f"{bucket.bucket} is in several regions ({where}); {region_id}, {why}, serves it."
    return replace(bucket, region_id=region_id, note=note, others=others)


def only_region(name: str, catalogue: Catalogue) -> str:
    """Return the id of the only region that a name of bills, hosts or portals fits, else ``""``."""
    try:
        found = resolve(name, catalogue)
    except InputError:
        return ""
    return "" if found.note else found.region_id


STORES = {"s3": "aws", "gs": "gcp", "az": "azure"}
"""The first letters of a bucket's URL to the provider that has it."""
_GIVEN = re.compile(r"(?:^|&)region=([^&]+)")
_EXAMPLES = {"s3": "us-east-1", "gs": "us-east1", "az": "eastus"}
_AZURE = r"https://([a-z0-9]{3,24})\.blob\.core\.windows\.net/"
# Names of buckets (3 to 63 characters; containers are similar) and of keys that need no quoting.
_BUCKET = r"((s3|gs)://|az://[a-z0-9]{3,24}/)[a-z0-9][a-z0-9._-]{1,220}(/[\w./+=@,-]*)?"


def bucket_of(url: str, field: str) -> str:
    """Return a bucket's URL, without a slash at its end; containers as ``az://account/container``.

    The URL of no bucket, or one that scripts would have to quote, is an InputError.
    """
    short = re.sub(_AZURE, r"az://\1/", url.strip())
    if not re.fullmatch(_BUCKET, short, re.ASCII):
        remedy = "Write s3://bucket, gs://bucket or az://account/container, and ?region=REGION."
        raise InputError(field, "is not the URL of a bucket", value=url, remedy=remedy)
    return short.rstrip("/")


def resolve_many(
    patterns: Iterable[str],
    catalogue: Catalogue,
    *,
    field: str = "rule",
    known: Collection[str] = (),
    doubtful: bool = False,
) -> frozenset[str]:
    """Return the ids of the regions that any of several patterns covers; see :func:`resolve`.

    ``provider:aws`` (or ``aws``), ``country:DE``, ``continent:EU``, ``city:Frankfurt``, a pattern
    of ids (``gcp:us-*``), ``set:paper-2018`` (the regions that an alias lists), or any name that
    :func:`resolve` knows. A name that fits several regions stands for all of them, an alias for
    those that it lists. Regions of unknown country, continent or city are `doubtful`: a deny-list
    denies them too. A pattern that covers nothing, most likely a misspelling, is an InputError.
    """
    regions = _all_regions(catalogue, known)
    selected = (_selected(each, catalogue, field, known, regions, doubtful) for each in patterns)
    return frozenset[str]().union(*selected)


def permitted(
    catalogue: Catalogue,
    *,
    allow: Sequence[str] = (),
    avoid: Sequence[str] = (),
    known: Collection[str] = (),
) -> frozenset[str]:
    """Return the ids of all regions that data may pass through under both lists of rules.

    An empty allow-list allows everything; what is denied is denied even where it is allowed
    too. A region of unknown country is not allowed by a list of countries and is denied by one.
    """
    denied = resolve_many(avoid, catalogue, field="avoid", known=known, doubtful=True)
    if not allow:
        return frozenset(region.id for region in _all_regions(catalogue, known)) - denied
    return resolve_many(allow, catalogue, field="allow", known=known) - denied


def _all_regions(catalogue: Catalogue, known: Collection[str]) -> list[Region]:
    unlisted = (i for i in known if i not in catalogue.regions)
    return [*catalogue.regions.values(), *map(catalogue.region, sorted(unlisted))]


def _named(text: str, catalogue: Catalogue, known: Collection[str]) -> tuple[list[str], bool]:
    """Return the ids that a name fits, and whether their order is one of preference."""
    regions = _all_regions(catalogue, known)
    name = _provider_first(_folded(text), regions)
    if (same := [r.id for r in regions if _folded(r.id) == name]) or not name:
        return same, False
    provider, colon, rest = name.partition(":")
    if colon:
        regions = [r for r in regions if _folded(r.provider) == provider]
        name = rest
    # An alias keeps its name where a user's region has it too: rules go on meaning the same.
    if members := _members(re.sub(r"[ .()]+", "-", name).strip("-"), catalogue):
        return [m for m in members if not colon or _folded(m.partition(":")[0]) == provider], True
    # Azure's portal writes its ids with blanks: East US 2.
    if bare := [r.id for r in regions if _folded(r.name) in (name, name.replace(" ", ""))]:
        return bare, False
    if in_city := [r.id for r in regions if r.city and _folded(r.city) == name]:
        return in_city, False
    # AWS's bills name usage by codes of regions: USE1-DataTransfer-Out-Bytes, EU- for Ireland.
    code, _, usage = name.partition("-")
    if re.fullmatch(r"[a-z]{3}\d", code) or (code == "eu" and re.match(_USAGE, usage)):
        billed = _members("euw1" if code == "eu" else code, catalogue)
        if not re.fullmatch(r"az\d", usage):
            return [r.id for r in regions if r.provider == "aws" and r.id in billed], False
    return _with_zone(name, regions), False


def _provider_first(name: str, regions: Iterable[Region]) -> str:
    """Return a folded name; the provider that stands at an end of it among blanks is its prefix."""
    words = re.sub(r"[ ,()/]+", " ", name).split()
    if len(words) < 2:
        return name
    providers = {_folded(region.provider) for region in regions}
    for at, rest in ((0, words[1:]), (-1, words[:-1])):
        if (provider := _COMPANIES.get(words[at], words[at])) in providers:
            return f"{provider}:{' '.join(rest)}"
    return name


def _with_zone(name: str, regions: list[Region]) -> list[str]:
    """Return the ids of the regions of which a folded name, without its provider, is a zone."""
    if not (zone := re.fullmatch(_ZONE, name)):
        return []
    region, number = zone["region"] or zone["code"] or zone["azure"], zone["number"]
    if number:  # a site of a user's own may be called azure:place-1
        regions = [r for r in regions if r.provider == "azure" and r.country]
    # AWS's ids of zones begin with a code of the region, such as apse1.
    short = {r.id: re.sub(_WAYS, lambda way: way[1][0], r.name).replace("-", "") for r in regions}
    codes = {r.id: short[r.id] for r in regions if r.provider == "aws"}
    return [r.id for r in regions if region in (_folded(r.name), codes.get(r.id))]


def zone_of(name: str, region: Region) -> str:
    """Return the id (``aws:us-east-1a``) of the zone of a region that a name is; else ``""``."""
    bare = _folded(name).rpartition(":")[2]
    return f"{region.provider}:{bare}" if _with_zone(bare, [region]) else ""


def _members(alias: str, catalogue: Catalogue) -> tuple[str, ...]:
    """Return the regions that an alias, written plainly, lists in order of preference; or none."""
    return next((m for name, m in catalogue.aliases.items() if _folded(name) == alias), ())


def _selected(
    pattern: str,
    catalogue: Catalogue,
    field: str,
    known: Collection[str],
    regions: list[Region],
    doubtful: bool,
) -> Iterable[str]:
    """Return the ids of the regions that a pattern covers."""
    text = pattern.strip()
    kind, colon, value = text.partition(":")
    kind, wanted = kind.casefold(), _folded(value)
    if kind == "set":
        if members := _members(wanted, catalogue):
            return members
        raise UnknownRegionError(field, pattern, _near(value, catalogue, known))
    if colon and kind in _TRAITS:
        if kind == "country" and wanted == "uk":
            wanted = "gb"
        traits = {region.id: getattr(region, kind) for region in regions}
        found = [i for i, trait in traits.items() if trait and _folded(trait) == wanted]
        if not found:
            values = set(traits.values()) - {""}
            ordered = [one for one in CONTINENTS if one in values]
            shown = ordered if kind == "continent" else sorted(values)
            remedy = f"{_TRAITS[kind]} are {', '.join(shown)}."
            problem = f"names a {kind} in which no region is known"
            raise InputError(field, problem, value=pattern, remedy=remedy)
        return [*found, *(i for i, trait in traits.items() if doubtful and not trait)]
    if "*" in text:
        glob = _folded(text).replace("[", "[[]")
        found = [r.id for r in regions if fnmatchcase(_folded(r.id), glob)]
    else:
        of_provider = [r.id for r in regions if _folded(r.provider) == _folded(text)]
        found = _named(text, catalogue, known)[0] or of_provider
    if not found:
        raise UnknownRegionError(field, pattern, _near(text, catalogue, known))
    return found


_TRAITS = {
    "provider": "Providers",
    "country": "Countries",
    "continent": "Continents",
    "city": "Cities",
}


def _folded(text: str) -> str:
    """Return a text without case, accents and runs of spaces."""
    if text.isascii():
        return " ".join(text.casefold().split())
    letters = (c for c in normalize("NFKD", text) if not combining(c))
    return " ".join("".join(letters).casefold().split())


def _near(text: str, catalogue: Catalogue, known: Collection[str]) -> list[str]:
    """Return names that look like this one, as they are spelled, the nearest first."""
    regions = _all_regions(catalogue, known)
    # Longer than any name: what follows would only cost time.
    name = _provider_first(_folded(text[:100]), regions)
    if members := _members(name.rpartition(":")[2], catalogue):
        return list(members)[:_NEAR_SHOWN]
    names = [r.id for r in regions] + [r.name for r in regions] + list(catalogue.aliases)
    names += [r.city for r in regions if r.city]
    spelled = {_folded(f"{r.provider}:{r.city}"): r.id for r in regions if r.city}
    spelled |= {_folded(n): n for n in reversed(names)}
    close = get_close_matches(name, spelled, n=_NEAR_SHOWN)
    return list(dict.fromkeys(spelled[c] for c in close))
