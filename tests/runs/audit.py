"""What the database itself notes while processes write: who wrote for a run that another one drove."""

from dataclasses import dataclass

from tests.runs.workers import Fetch
from tests.store.test_postgres_fence import FENCED

_TABLES = """
CREATE TABLE zombie_rows (name text, run_id text, writer text, driver text);
CREATE TABLE noted_overlaps (run_id text, other text);
CREATE FUNCTION note_writer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO zombie_rows SELECT TG_TABLE_NAME, run_id, current_setting('maniple.process', true), process
        FROM runs WHERE run_id = NEW.run_id AND process <> current_setting('maniple.process', true);
    RETURN NULL;
END $$;
CREATE FUNCTION note_overlap() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO noted_overlaps SELECT NEW.run_id, run_id FROM runs
        WHERE thread_id = NEW.thread_id AND run_id <> NEW.run_id AND status = 'running';
    RETURN NULL;
END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE ON runs FOR EACH ROW
    WHEN (NEW.status = 'running') EXECUTE FUNCTION note_overlap();
"""
_NOTE = "CREATE TRIGGER note AFTER INSERT OR UPDATE ON {} FOR EACH ROW EXECUTE FUNCTION note_writer()"


@dataclass(frozen=True, slots=True)
class Audit:
    """What was noted: rows by table, written by a process that had lost the run; runs of a thread at once."""

    zombie_rows: dict[str, int]
    overlaps: int


async def begin_audit(fetch: Fetch) -> None:
    """Note from now on who writes rows of runs, and which runs of a thread work at the same time."""
    await fetch(_TABLES)
    for table in FENCED:
        await fetch(_NOTE.format(table))


async def remove_fences(fetch: Fetch) -> None:
    """Let every process write for every run."""
    for table in FENCED:
        await fetch(f"ALTER TABLE {table} DISABLE TRIGGER fence")
    for name in ("fence_end", "fence_delete"):
        await fetch(f"ALTER TABLE procrastinate_jobs DISABLE TRIGGER {name}")


async def read_audit(fetch: Fetch) -> Audit:
    """Return what was noted until now."""
    rows = await fetch("SELECT name, count(*) FROM zombie_rows GROUP BY name")
    ((overlaps,),) = await fetch("SELECT count(*) FROM noted_overlaps")
    return Audit(dict(rows), overlaps)
