"""``/v1/samples`` and ``/v1/quarantine``: measurements from elsewhere, and decisions about them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from planner.model.errors import InputError, UnknownRegionError
from probes.importers.limits import FAULTS, PhysicalGate, fault
from probes.importers.options import split
from probes.metrics import CAPS, Metric
from probes.samples import QuarantinedSample, Sample
from relayd.http.answers import decision_effects, samples_meant
from relayd.http.models import (
    MOST_NAME,
    Name,
    Page,
    RequestModel,
    Text,
    answer,
    many,
    model_of,
    page,
)
from relayd.http.problems import ProblemError
from relayd.http.route import (
    JSON,
    NDJSON,
    RequestContext,
    as_model,
    check_media_type,
    page_of,
    position,
    read_document,
    read_json,
    read_parts,
    route,
)
from relayd.questions.caveats import DisputedFigure
from relayd.sources.wan import Wan
from relayd.store import Store
from relayd.store.samples.decisions import (
    QuarantineFilter,
    ReasonCount,
    State,
    decide,
    quarantine_reasons,
    quarantined,
    settle,
)
from relayd.store.samples.ingest import Batch, Limits, ingest

ORIGIN = "service"
MOST_DECIDED = 1000
MOST_REJECTIONS = 100
MOST_LINE_BYTES = 64_000
MOST_DETAIL = 4_000
EFFECTS_LIMIT_S = 300.0
"""Longest time for effects: all links are estimated twice."""
Word: TypeAlias = Annotated[Text, Field(max_length=100)]


SAMPLE_GIVEN = model_of(
    "SampleGiven",
    Sample,
    "One measurement. Two with equal values are one sample, however often they are sent.",
    base=RequestModel,
    sparse=True,
    src=(Name, "`provider:region`; a zone may follow as clouds write it."),
    dst=Name,
    src_zone=Word,
    dst_zone=Word,
    src_vm=Word,
    dst_vm=Word,
    tool=(Word, Field("api", min_length=1)),
    detail=(dict[str, Any] | None, Field(None, description="Further output of the tool.")),
)


class SamplesGiven(RequestModel):
    """Samples in one document."""

    samples: list[dict[str, Any]] = Field(
        description="Each a SampleGiven; a wrong one is rejected with its reason.",
        json_schema_extra={"items": {"$ref": "#/components/schemas/SampleGiven"}},
    )


REJECTION = model_of(
    "Rejection",
    "A sample that nothing rests on.",
    row=(int, "From 1: its place in the list, or its line."),
    reason=str,
)
INGEST_ANSWER = answer(
    "IngestAnswer",
    "What became of the samples; when this is read, those accepted are on disk.",
    accepted=int,
    duplicates=(int, "Those that were there already."),
    rejected=int,
    rejections=(many(REJECTION), "The first 100."),
    quarantined=(int, "Those that can't be measurements: kept apart, and nothing rests on them."),
    quarantine=(many(REJECTION), "The first 100 of these."),
    batch_id=(int | None, "Under which new samples are kept."),
)


def _kind(reason: str) -> str:
    if reason not in FAULTS:
        raise ValueError(f"must be one of {', '.join(FAULTS)}")
    return reason


class QuarantineQuery(Page):
    """Which samples of quarantine."""

    reason: (
        Annotated[str, AfterValidator(_kind), Field(json_schema_extra={"enum": list(FAULTS)})]
        | None
    ) = Field(None, description="Only those of one kind of reason.")
    state: State = Field("open", description="Not decided yet, or accepted, or rejected.")
    src: Name | None = Field(None, description="Only of links out of this region.")
    dst: Name | None = Field(None, description="Only of links into this region.")


QUARANTINED_SAMPLE = model_of(
    "QuarantinedSample",
    QuarantinedSample,
    without=("sample", "reporter", "address"),
    token=(str | None, "Name of the token that sent it; null for commands."),
    src=str,
    dst=str,
    metric=str,
    value=float,
    measured_at_s=float,
    tool=str,
    connections=int | None,
    src_vm=str,
    dst_vm=str,
)
QUARANTINE = page(
    "Quarantine",
    "A page of samples that nothing rests on.",
    disputes=(list[str], "Figures that samples contradict, or nothing confirms."),
    disputed=(
        many(
            model_of(
                "DisputedSeen",
                DisputedFigure,
                sources=(list[str], "Who reported them, as a selection names them."),
            )
        ),
        "The same, each with what to decide about.",
    ),
    reasons=(many(model_of("QuarantineReason", ReasonCount)), "The kinds that occur, with counts."),
    samples=many(QUARANTINED_SAMPLE),
)


class SelectionGiven(RequestModel):
    """Which samples are meant: those to which all that is stated applies."""

    source: Annotated[Text, Field(max_length=MOST_NAME + 10)] | None = Field(
        None, description="Who reported them: `files`, `token NAME`, `address IP`."
    )
    token: Name | None = Field(None, description="Name of the token that sent them.")
    address: Word | None = Field(None, description="From where they were sent.")
    tool: Word | None = Field(None, description="With or without its version.")
    src: Name | None = None
    dst: Name | None = None
    metric: Metric | None = None
    batch: int | None = Field(None, ge=1, le=2**53)
    since_s: float | None = Field(None, description="Measured then or later, seconds since 1970.")
    until_s: float | None = Field(None, description="Measured then or earlier.")


class DecisionRequest(RequestModel):
    """An operator's decision about samples."""

    decision: Literal["accept", "reject", "confirm", "retract", "restore"] = Field(
        description="`accept` and `reject` samples in quarantine; `confirm` others as the own "
        "prober's, `retract` them so that they count no longer, `restore` retracted ones."
    )
    quarantined: list[Annotated[int, Field(ge=1, le=2**53)]] = Field(
        [], max_length=MOST_DECIDED, description="Ids of samples in quarantine."
    )
    selection: SelectionGiven | None = Field(None, description="Of samples not in quarantine.")
    reason: Text = Field("", max_length=500, description="Why, for the record.")
    through: int | None = Field(
        None,
        ge=0,
        le=2**53,
        description="The last sample that `selection` means, as the effects have it: samples that "
        "came later are left as they are.",
    )

    @model_validator(mode="after")
    def _names_samples(self) -> Self:
        if (self.decision in ("accept", "reject")) is not bool(self.quarantined):
            raise ValueError("`accept` and `reject`, and they alone, need ids in `quarantined`")
        if (self.decision in ("accept", "reject")) is (self.selection is not None):
            raise ValueError("`confirm`, `retract` and `restore`, and they alone, need `selection`")
        return self


DECISION_ANSWER = answer(
    "DecisionAnswer",
    "A decision that was made; the next snapshot heeds it.",
    samples=(int, "How many it was about."),
    batch_id=(int | None, "That has them, of those accepted."),
)


class SampleRows:
    """Samples of rows that a client sent, each judged by itself.

    Those that can't be measurements, by the gate, stand apart. Of those that are rejected, and of
    those apart, the first hundred are listed with row and reason.
    """

    def __init__(self, is_declared: Callable[[str], bool], gate: PhysicalGate) -> None:
        self._is_declared = is_declared
        self._gate = gate
        self.samples: list[Sample | QuarantinedSample] = []
        self.apart = self.rejected = self._row = 0
        self.rejections: list[dict[str, Any]] = []
        self.quarantine: list[dict[str, Any]] = []

    def add(self, contents: Iterable[Any]) -> None:
        """Take rows that are read already, or lines of NDJSON, of which empty ones are skipped."""
        for content in contents:
            self._row += 1
            if isinstance(content, bytes) and not content.strip():
                continue
            try:
                sample = self._sample(content)
            except (InputError, ProblemError) as error:
                self.rejected += 1
                _list(self.rejections, self._row, str(error))
                continue
            judged = self._gate.judged(sample)
            self.samples.append(judged)
            if isinstance(judged, QuarantinedSample):
                self.apart += 1
                _list(self.quarantine, self._row, judged.reason)

    def _sample(self, content: Any) -> Sample:
        if isinstance(content, bytes):
            if len(content) > MOST_LINE_BYTES:
                detail = f"the line is longer than {MOST_LINE_BYTES} bytes"
                raise ProblemError(413, "too-large", detail)
            content = read_json(content, "the line")
        given = as_model(content, SAMPLE_GIVEN)
        src, src_zone = self._end("src", given.src)
        dst, dst_zone = self._end("dst", given.dst)
        if (src == dst) is not (given.metric in CAPS):
            of_one = "names one region as both" if src == dst else "must have one region as"
            raise InputError("dst", f"{of_one} ends for {given.metric}", value=given.dst)
        if problem := fault(given.metric, given.value, "value"):
            raise InputError("value", problem.removeprefix("value "), value=given.value)
        detail = json.dumps(given.detail, sort_keys=True) if given.detail else ""
        if len(detail) > MOST_DETAIL:
            raise InputError("detail", f"is longer than {MOST_DETAIL} characters")
        ends = {"src": src, "dst": dst}
        zones = {"src_zone": given.src_zone or src_zone, "dst_zone": given.dst_zone or dst_zone}
        return Sample(**{**dict(given), **ends, **zones, "detail": detail})

    def _end(self, field: str, name: str) -> tuple[str, str]:
        """Return the region and zone at an end."""
        found = split(name)
        if found is None:
            raise InputError(field, "is not provider:region", value=name)
        if not self._is_declared(found[0]):
            remedy = (
                "The operator of the service declares regions: in a catalogue file, in "
                "its fleet file, or by `relayd import` on its store."
            )
            raise InputError(field, "is a region that is not declared", value=name, remedy=remedy)
        return found


def _list(listed: list[dict[str, Any]], row: int, reason: str) -> None:
    if len(listed) < MOST_REJECTIONS:
        listed.append({"row": row, "reason": reason})


@route(
    "POST",
    "/v1/samples",
    "ingest",
    INGEST_ANSWER,
    body=SamplesGiven,
    example={
        "samples": [
            {
                "src": "aws:us-east-1",
                "dst": "aws:sa-east-1",
                "metric": "rtt_ms",
                "value": 114.2,
                "measured_at_s": 1700000000,
            }
        ]
    },
    body_types=(JSON, NDJSON),
    also_schemas=(SAMPLE_GIVEN,),
)
async def post_samples(context: RequestContext) -> dict[str, Any]:
    """Send measurements.

    Samples in one JSON document, or one a line (NDJSON) as a stream. A sample that is there
    already is a duplicate, so sending again after a lost answer is safe. All samples of a
    request are stored together; wrong ones, and those of regions that the operator has not
    declared, are rejected with their reasons. Those that can't be measurements (above the
    network card of a VM type, faster than light, in the future) are kept in quarantine, and
    nothing rests on them. A request with which its token would report more series (metrics of
    links) than it may is refused whole.
    """
    service, settings = context.service, context.service.settings
    count = service.metrics.samples.labels
    rows = await _rows(context)
    accepted = duplicates = 0
    batch_id = None
    if rows.samples:
        token = service.access.token(context.request)
        series = settings.max_series
        if token and token.max_series is not None:
            series = token.max_series
        limits = Limits(settings.max_regions, settings.max_setups, series)
        name, address = token.name if token else "", context.request.remote or ""
        batch = Batch(ORIGIN, "live", reporter=name, address=address)
        try:
            report = await service.store.write(
                lambda store: ingest(store, batch, rows.samples, limits=limits)
            )
        except InputError:
            count("over_limit").inc(len(rows.samples))
            raise
        accepted, duplicates, batch_id = report.accepted, report.duplicates, report.batch_id
    results = {"accepted": accepted, "duplicate": duplicates, "rejected": rows.rejected}
    for result, number in {**results, "quarantined": rows.apart}.items():
        count(result).inc(number)
    if accepted:
        service.want_snapshot()
    if rows.rejected and not rows.samples:
        detail = (
            f"None of the {rows.rejected} samples can be used; the first: "
            f"{rows.rejections[0]['reason']}"
        )
        raise ProblemError(422, "input", detail, rejections=rows.rejections)
    return {
        "accepted": accepted,
        "duplicates": duplicates,
        "rejected": rows.rejected,
        "rejections": rows.rejections,
        "quarantined": rows.apart,
        "quarantine": rows.quarantine,
        "batch_id": batch_id,
    }


async def _rows(context: RequestContext) -> SampleRows:
    """Read the samples in threads: others are answered meanwhile."""
    settings, request = context.service.settings, context.request
    gate = await asyncio.to_thread(lambda: context.current.gate)
    rows = SampleRows(context.service.is_declared, gate)
    if check_media_type(request, (JSON, NDJSON)) == JSON:
        given = await read_document(request, settings, SamplesGiven)
        await asyncio.to_thread(rows.add, given.samples)
        return rows
    left = b""
    async for part in read_parts(request, settings.samples_mb, settings.stream_timeout_s):
        *lines, left = (left + part).split(b"\n")
        if lines:
            await asyncio.to_thread(rows.add, lines)
    rows.add([left] if left else [])
    return rows


# ---- quarantine and decisions ------------------------------------------------------------------


@route("GET", "/v1/quarantine", "read", QUARANTINE, query=QuarantineQuery)
async def list_quarantine(context: RequestContext) -> dict[str, Any]:
    """List samples in quarantine, the newest first.

    Those that can't be measurements by the catalogue, with the reason and who sent them, and
    how many there are for each kind of reason. `reason` chooses one kind.
    """
    current, query = context.current, context.query
    before_id = (position(query.cursor, int) or 0) or None
    src, dst = (region_meant(current.wan, getattr(query, end), end) for end in ("src", "dst"))
    wanted = QuarantineFilter(query.state, query.reason or "", src or "", dst or "")
    rows, reasons = await context.read(
        lambda store: (
            quarantined(store.database, wanted, limit=query.limit + 1, before_id=before_id),
            quarantine_reasons(store.database, wanted),
        )
    )
    # Some 20,000 links take a moment, once a snapshot: others are answered meanwhile.
    disputed = await asyncio.to_thread(lambda: current.disputes)
    disputed = [figure for figure in disputed if _is_of(figure, src, dst)]
    return {
        "disputes": [figure.sentence for figure in disputed],
        "disputed": disputed,
        "reasons": reasons,
        **page_of("samples", rows, query.limit, lambda row: (row.id,), _seen),
    }


def region_meant(wan: Wan, name: str | None, field: str) -> str | None:
    """Return the region that a name stands for, where one is given.

    An id may be of none that is known: nothing is known of those whose samples do not count.

    Raises UnknownRegionError or AmbiguousRegionError if another name stands for none or for
    several.
    """
    try:
        return wan.resolve(name, field).region_id if name else None
    except UnknownRegionError:
        if name and ":" in name:
            return name
        raise


def _is_of(figure: DisputedFigure, src: str | None, dst: str | None) -> bool:
    """Return whether a figure is of the links from and to a region, or of a VM at their ends."""
    if figure.src == figure.dst and (src or dst):
        return figure.src in (src, dst)
    return src in (None, figure.src) and dst in (None, figure.dst)


def _seen(row: QuarantinedSample) -> dict[str, Any]:
    others = {**row.sample._asdict(), **row._asdict(), "token": row.reporter or None}
    return {name: others[name] for name in QUARANTINED_SAMPLE.model_fields}


@route("POST", "/v1/samples/decisions/effects", "admin", body=DecisionRequest, internal=True)
async def post_decision_effects(context: RequestContext) -> dict[str, Any]:
    """Show what a decision about samples would change.

    Estimates all links twice, from all samples: with the decision and without. Nothing is
    decided. Where that takes too long, it is refused (503): the problem `timeout` has `samples` and
    `through`.
    """
    service, request = context.service, _request(context)
    path, effects = service.store.path, {"total": 0, "changed": []}
    meant = await context.ask(samples_meant, path, request)
    if meant["samples"] and request["decision"] != "reject":
        request |= {"through": meant["through"]}
        ask, version = service.workers.ask_apart, context.current.version
        try:
            async with service.previews.turn():
                effects = await ask(
                    version, decision_effects, path, request, limit_s=EFFECTS_LIMIT_S
                )
        except ProblemError as problem:
            if problem.content["kind"] != "timeout":
                raise
            detail = (
                f"Estimating all links with these samples and without takes longer than the "
                f"{EFFECTS_LIMIT_S:g} s that it may. The decision can be made all the same."
            )
            raise ProblemError(503, "timeout", detail, **meant) from None
    return {**meant, **effects}


@route("POST", "/v1/samples/decisions", "admin", DECISION_ANSWER, body=DecisionRequest)
async def post_decision(context: RequestContext) -> dict[str, Any]:
    """Decide about samples.

    Accept or reject samples in quarantine, or confirm, retract or restore others. Nothing is
    removed: the decision is kept with who made it, when and why. The next snapshot heeds it.
    """
    service, request = context.service, _request(context)
    decision, numbers = request["decision"], request["quarantined"]
    loop = asyncio.get_running_loop()
    by = {
        "who": service.access.holder(context.request) or "anybody",
        "reason": request["reason"],
        "address": context.request.remote or "",
    }

    def write(store: Store) -> tuple[int, int | None]:
        samples, batch_id = len(set(numbers)), None
        if request["selection"]:
            through, meant = request["through"], request["selection"]
            samples = decide(store.database, decision, meant, **by, through=through)
        else:
            batch_id = settle(store.database, decision, numbers, **by)
        # Here, in the store's thread: it is finished also where its caller has gone.
        if samples:
            loop.call_soon_threadsafe(service.want_snapshot)
        return samples, batch_id

    samples, batch_id = await service.store.write(write)
    return {"samples": samples, "batch_id": batch_id}


def _request(context: RequestContext) -> dict[str, Any]:
    """Return the request as JSON types, with ids in place of names of regions."""
    request: dict[str, Any] = context.body.model_dump()
    if selection := request["selection"]:
        wan = context.current.wan
        for end in ("src", "dst"):
            selection[end] = region_meant(wan, selection[end], f"selection.{end}")
    return request
