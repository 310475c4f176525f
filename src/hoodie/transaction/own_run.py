"""What one run of a plan has made.

Runs of a plan share its instant: who was only slow must not delete what the next one wrote, nor leave files that would
count when that one completes.
"""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.spec import Instant, parse_data_file_name, parse_write_token


@dataclass(frozen=True, slots=True)
class OwnRun:
    """A run of a plan: its `inflight` instant, when the file of that was made (milliseconds since 1970), and the
    numbers that attempts of its tasks have in the names of files.
    """

    inflight: Instant
    begun_ms: int
    attempts: range

    def has_made(self, path: str) -> bool:
        """Whether the name of a data file says that this run wrote it."""
        name = parse_data_file_name(path.rpartition("/")[2])
        token = None if name is None or name.write_token is None else parse_write_token(name.write_token)
        return token is not None and token.attempt in self.attempts
