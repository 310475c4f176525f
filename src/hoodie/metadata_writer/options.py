"""Options of keeping the metadata table, parsed once per call."""

from __future__ import annotations

from dataclasses import dataclass, field

from hoodie.config import Config
from hoodie.layout.required import metadata_is_off
from hoodie.spec import TableConfig

ENABLE = "hoodie.metadata.enable"


@dataclass(frozen=True, slots=True)
class MetadataOptions:
    """What to keep, and when to tidy up. Defaults are Hudi's.

    Behaviour. `enable`: `hoodie.metadata.enable`. `config`: all options of the call, for sources that have their own.

    Performance. `compact_after` (`hoodie.metadata.compact.max.delta.commits`): delta commits after which the metadata
    table is compacted. `keep_versions`: slices of a file group that its cleaning leaves.
    """

    enable: bool = True
    config: Config = field(default_factory=Config)
    compact_after: int = 10
    keep_versions: int = 2

    def keeps(self, table: TableConfig) -> bool:
        """Whether the table is to have a metadata table: as the options say; without a word, by default or as it is.

        Raises:
            Invalid: they say no, and the table cannot be without.
        """
        if table.is_federated and self.config.is_set(ENABLE) and not self.enable:
            raise metadata_is_off(table.name)
        return self.enable if self.config.is_set(ENABLE) else self.enable or table.has_metadata_table

    @classmethod
    def of(cls, config: Config) -> MetadataOptions:
        """The options in `config`."""
        return cls(
            enable=config.flag(ENABLE),
            config=config,
            compact_after=config.integer("hoodie.metadata.compact.max.delta.commits"),
        )
