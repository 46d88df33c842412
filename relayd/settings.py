"""Settings: from the command line, else ``RELAYD_*`` in the environment, else a TOML file."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.model.errors import InputError
from relayd.store.location import Location, parse_location

FILE_NAME = "config.toml"


@dataclass(frozen=True, slots=True)
class Settings:
    """Defaults of all commands; options override them."""

    db: Location | None = None  # the store, a file or a server; None for the default per-user file
    catalogues: tuple[Path, ...] = ()  # a user's own catalogue files
    fleet: Path | None = None  # the user's fleet file: plans assume its VMs
    # These are defaults for ``relayd plan``, written as on the command line
    time_value: str | None = None
    margin: str | None = None
    vms: str | None = None
    connections: str | None = None


_SCALARS = ("time_value", "margin", "vms", "connections")
_KEYS = ("catalogues", *_SCALARS, "db", "fleet")


def load_settings() -> Settings:
    """Read the environment and the settings file.

    The file is named by ``RELAYD_CONFIG``, else ``relayd/config.toml`` in the user's
    configuration folder; it need not exist.

    Raises InputError if the file is malformed, has an unknown key, or was named and is missing.
    """
    from_file, path = _file_settings()
    for key, value in from_file.items():
        if key not in _KEYS:
            remedy = f"Settings are {', '.join(sorted(_KEYS))}."
            raise InputError(f"{path}: {key}", "is not a setting", remedy=remedy)
        wants_list = key == "catalogues"
        if wants_list is not isinstance(value, list) or isinstance(value, dict):
            kind = "a list of file names" if wants_list else "one value"
            raise InputError(f"{path}: {key}", f"must be {kind}", value=value)
    # What is in the file is relative to its folder, and what is in the environment is not.
    found: dict[str, tuple[Any, Path]] = {
        key: (value, Path(path).parent) for key, value in from_file.items()
    }
    for key in _KEYS:
        if given := os.environ.get(f"RELAYD_{key.upper()}"):
            listed = filter(None, given.split(os.pathsep))
            found[key] = ([*listed] if key == "catalogues" else given, Path())
    names, folder = found.get("catalogues", ((), Path()))
    db, fleet = found.get("db"), found.get("fleet")
    return Settings(
        db=db and parse_location(str(db[0]), db[1]),
        catalogues=tuple(folder / str(name) for name in names),
        fleet=fleet and fleet[1] / str(fleet[0]),
        **{key: str(found[key][0]) for key in _SCALARS if key in found},
    )


def _config_home() -> Path:
    given = os.environ.get("XDG_CONFIG_HOME")
    return Path(given) if given else Path.home() / ".config"


def _file_settings() -> tuple[dict[str, object], str]:
    named = os.environ.get("RELAYD_CONFIG")
    path = named or str(_config_home() / "relayd" / FILE_NAME)
    try:
        return tomllib.loads(Path(path).read_bytes().decode()), path
    except FileNotFoundError:
        if named:
            raise InputError("RELAYD_CONFIG", "names a file that is missing", value=named) from None
        return {}, path
    except OSError as error:
        raise InputError(path, f"can't be read ({error.strerror})") from None
    except ValueError as error:
        remedy = "Mend the file or remove it."
        raise InputError(path, f"is not valid TOML: {error}", remedy=remedy) from None
