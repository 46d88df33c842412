"""The schema's versions on PostgreSQL.

The table ``relayd_schema`` keeps the number, and marks the schema that it is in as ours.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.model.errors import StoreError
from relayd.store.failures import failure, too_new
from relayd.store.postgresql.database import PostgresqlDatabase
from relayd.store.schema import BACK, SCHEMA_VERSION, run_script, script, script_back

MARK = "relayd_schema"
FOLDER = "postgresql"

# Our mark, and what else is there. In one statement: between two, another process might have laid
# out a store, whose tables would then pass for another application's. What extensions put into a
# schema is no sign of one.
_WHAT_IS_THERE = """
SELECT EXISTS (
    SELECT FROM pg_class WHERE relname = ? AND relnamespace = CAST(? AS oid)
), (
    SELECT relname FROM pg_class
    WHERE relnamespace = CAST(? AS oid) AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    AND NOT EXISTS (
        SELECT FROM pg_depend
        WHERE classid = CAST('pg_class' AS regclass) AND objid = pg_class.oid AND deptype = 'e'
    )
    ORDER BY relname LIMIT 1
)
"""


def version(database: PostgresqlDatabase) -> int:
    """Return the schema version of a database; 0 for one that is empty.

    Raises
    ------
    StoreError
        If it is newer than this program, or another application's.
    """
    schema = database.schema
    is_marked, relation = database.row(_WHAT_IS_THERE, (MARK, schema, schema))
    if not is_marked:
        if relation is not None:
            raise foreign_tables(database, relation)
        return 0
    row = database.row(f"SELECT version FROM {MARK}")  # noqa: S608
    found = int(row[0]) if row else 0
    if found > SCHEMA_VERSION:
        raise too_new(database.location, found, SCHEMA_VERSION)
    return found


def upgrade(database: PostgresqlDatabase) -> None:
    """Bring a database to :data:`SCHEMA_VERSION` in one transaction."""
    if version(database) == SCHEMA_VERSION:
        return
    with database.upgrading():
        # Read again: another process may have been first.
        found = version(database)
        if found == 0:
            database.change(
                f"CREATE TABLE {MARK} (version INTEGER NOT NULL); INSERT INTO {MARK} VALUES (0)"  # noqa: S608
            )
        for number in range(found + 1, SCHEMA_VERSION + 1):
            run_script(database, script(number, FOLDER), _runner(database))
            database.change(f"UPDATE {MARK} SET version = ?", (number,))  # noqa: S608


def downgrade(database: PostgresqlDatabase) -> int:
    """Bring a database back by one version in one transaction; return which it has then.

    Raises
    ------
    StoreError
        If there is no way back from its version.
    """
    with database.upgrading():
        found = version(database)
        sql = script_back(database.location, found, f"{FOLDER}/{BACK}")
        run_script(database, sql, _runner(database), back=True)
        database.change(f"UPDATE {MARK} SET version = ?", (found - 1,))  # noqa: S608
    return found - 1


def _runner(database: PostgresqlDatabase) -> Callable[[str], None]:
    def run(sql: str) -> None:
        database.change(sql)

    return run


def foreign_tables(database: PostgresqlDatabase, name: str) -> StoreError:
    """Return the error for a schema that another application uses."""
    return failure(
        database.location,
        f"holds something else than relayd's data, such as {name!r}",
        "It was left as it is. Name an empty database, or a schema of its own in this one: "
        "?options=-c%20search_path%3Drelayd.",
    )
