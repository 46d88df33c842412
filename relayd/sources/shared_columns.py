"""Links of a snapshot in files that processes map, so that all of them have the same pages.

A file is written once, whole or not at all, for its owner alone. Whoever maps one holds a shared
lock on it (``flock``), which the system releases with the mapping, also of a process that is
killed; so a file without a lock is one that nobody uses. Its folder belongs to one service, which
removes it. Layout: the blocks, each at a multiple of 8 bytes; a pickle of where they are and of
what they refer to; the length of that pickle in the last 8 bytes.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from planner.model.columns.block import Block
from planner.model.columns.links import LinkColumns

_SUFFIX = ".columns"
_ALIGNED = 8
_LENGTH_BYTES = 8


class MappedColumns(LinkColumns):
    """Links whose blocks are pages of a file; a pickle of them holds its path alone.

    Parameters
    ----------
    path : Path

    Raises
    ------
    OSError
        If there is no such file, or it can't be mapped.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            # The mapping has a duplicate of the descriptor, and with it the lock.
            pages = memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
        finally:
            os.close(descriptor)
        end = len(pages) - _LENGTH_BYTES
        begin = end - int.from_bytes(pages[end:], "little")
        # Written by this service, in a folder that only its user may enter.
        names, places, origins = pickle.loads(pages[begin:end])  # noqa: S301
        blocks = {at: Block(pages[first:last]) for at, (first, last) in places.items()}
        super().__init__(names, blocks, origins)

    def __reduce__(self) -> tuple[type[MappedColumns], tuple[Path]]:
        """Let another process map the file."""
        return MappedColumns, (self._path,)


class SharedColumns:
    """The files of a folder.

    Parameters
    ----------
    folder : Path
        That only its user may enter.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, name: str, read: Callable[[], LinkColumns]) -> LinkColumns:
        """Return the links of a name from its file, which is made where there is none.

        Of several processes that ask at once, one reads and the others wait for it. Where a file
        can't be made, each has a copy of its own.

        Parameters
        ----------
        name : str
            Stands for the same links for ever.
        read : callable
            Returns them.
        """
        path = self._folder / (sha256(name.encode()).hexdigest()[:32] + _SUFFIX)
        with suppress(FileNotFoundError):
            return MappedColumns(path)
        found = None
        try:
            with self._turn():
                with suppress(FileNotFoundError):
                    return MappedColumns(path)
                found = read()
                if not len(found):
                    return found
                self._write(path, found)
                found = None  # what was read goes before anything is made of the file
                return MappedColumns(path)
        except OSError:
            return read() if found is None else found

    def remove_unused(self) -> None:
        """Remove the files that no process has mapped."""
        for path in self._folder.glob(f"*{_SUFFIX}"):
            with suppress(OSError), self._turn():
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()
                finally:
                    os.close(descriptor)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Keep other processes from making or removing files meanwhile."""
        descriptor = os.open(self._folder / "turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _write(self, path: Path, columns: LinkColumns) -> None:
        with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as file:
            try:
                places = {}
                for at, block in columns.blocks.items():
                    first = file.tell()
                    last = first + file.write(block.data)
                    file.write(bytes(-last % _ALIGNED))
                    places[at] = (first, last)
                size = file.write(pickle.dumps((columns.names, places, columns.origins)))
                file.write(size.to_bytes(_LENGTH_BYTES, "little"))
                file.flush()
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
