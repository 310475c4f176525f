"""`Table.indexes`: the indexes of the metadata table, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from hoodie.arguments import checked_flag, checked_mapping, checked_text, checked_texts, checked_whole
from hoodie.config import option_text
from hoodie.metadata import IndexDefinition, load_index_definitions
from hoodie.notebook import Displayed
from hoodie.table.opened import OpenedTable

if TYPE_CHECKING:
    from hoodie.metadata_writer import IndexBuildResult
    from hoodie.services.index_advice import IndexAdvice


class TableIndexes(Mapping[str, IndexDefinition | None], Displayed):
    """The partitions of the metadata table that readers may use, by name, with the index definitions of those that have
    one; loaded anew with every look.
    """

    def __init__(self, opened: OpenedTable) -> None:
        self._opened = opened

    def create(
        self,
        name: str,
        *columns: str,
        function: str | None = None,
        using: str = "column_stats",
        partitioned: bool = False,
        **options: object,
    ) -> IndexBuildResult:
        """Builds an index of the metadata table, beside running writers, which keep it from then on.

        `name` is `record_index` (of each partition when `partitioned`), `column_stats`, `partition_stats` or
        `bloom_filters`, or a name of one's own for a secondary index of one column, or with `function` (for example
        `from_unixtime`, with the options it takes) for an expression index `using` column_stats or bloom_filters.

        Raises:
            Invalid: there is such an index, or the table cannot have it. Unsupported: a column or function that cannot
                be indexed. Conflict: another writer holds the table.
        """
        from hoodie.metadata_writer import (  # noqa: PLC0415 - loads what writes
            IndexRequest,
            build_index,
            describe_index,
        )

        checked_text("The name of an index", name)
        checked_texts("columns", columns)
        checked_text("using", using)
        checked_flag("partitioned", partitioned)
        if function is not None:
            checked_text("function", function)
        checked_mapping("Options", options, "Pass **{'hoodie.…': value}")
        of_function = {key: option_text(key, value) for key, value in options.items() if not key.startswith("hoodie.")}
        definition = describe_index(IndexRequest(name, columns, function, using, partitioned, of_function))
        config = self._opened.config({key: value for key, value in options.items() if key.startswith("hoodie.")})
        return build_index(self._opened.fresh(), definition, self._opened.engine, config)

    def advise(self, keys: int = 1000, **options: object) -> IndexAdvice:
        """Asks each write index for so many keys of the table, and recommends the one that finds them with the least
        work. Nothing is stored.

        Raises:
            Invalid: the table has no keys to ask for.
        """
        from hoodie.services.index_advice import advise_index  # noqa: PLC0415 - loads what writes

        wanted = checked_whole("keys", keys, least=1)
        return advise_index(self._opened.fresh(), self._opened.config(options), self._opened.engine, keys=wanted)

    def drop(self, name: str) -> tuple[str, ...]:
        """Drops an index and those that need it; returns their names."""
        from hoodie.metadata_writer import drop_index  # noqa: PLC0415 - loads what writes

        checked_text("The name of an index", name)
        with self._opened.held("drop index") as handle:
            return drop_index(handle, name)

    def rebuild(self, *names: str, accept_missing: bool = False) -> None:
        """Rebuilds partitions of the metadata table from the table's files; without names all of it. Writes that died
        are rolled back.

        Files under storage paths are listed under all prefixes. One that a commit wrote and that is nowhere stops that,
        unless it is accepted: a prefix that is not reached looks the same.

        Raises:
            Unavailable: files are missing, or a storage path does not say whose it is.
        """
        from hoodie.metadata_writer import rebuild_partitions, told_before_the_end  # noqa: PLC0415 - loads what writes
        from hoodie.services.repair import ensure_whole  # noqa: PLC0415 - the same
        from hoodie.services.rollback.failed_writes import roll_back_dead_writes  # noqa: PLC0415 - the same
        from hoodie.view import collecting_later  # noqa: PLC0415 - the same

        checked_texts("names", names)
        checked_flag("accept_missing", accept_missing)
        # There may be a hundred thousand files: a search for garbage among them takes as long as all else.
        with self._opened.held("rebuild metadata") as handle, collecting_later():
            if not accept_missing:
                ensure_whole(handle, self._opened.engine)
            lost = told_before_the_end(handle)
            made = rebuild_partitions(handle, names or handle.config.metadata_partitions, self._opened.engine)
            roll_back_dead_writes(made, self._opened.engine, self._opened.config({}), lost)

    def __getitem__(self, name: str) -> IndexDefinition | None:
        return self._load()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())

    def __repr__(self) -> str:
        return f"Indexes({', '.join(self) or 'none'})"

    def _load(self) -> dict[str, IndexDefinition | None]:
        handle = self._opened.fresh()
        definitions = load_index_definitions(handle.storage, handle.config)
        return {name: definitions.get(name) for name in handle.config.metadata_partitions}
