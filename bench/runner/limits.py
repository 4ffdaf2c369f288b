"""The limits of this machine: open files and processors."""

import os
import resource
from dataclasses import dataclass

# File descriptors for the standard streams, the loop itself and the dynamic linker.
FDS_RESERVED = 100


@dataclass(frozen=True)
class Limits:
    """The limits to which parameters of suites are clamped."""

    open_files: int

    @property
    def pairs_max(self) -> int:
        """The most socket pairs that one process can hold."""
        return max(1, (self.open_files - FDS_RESERVED) // 2)

    @property
    def descriptors_max(self) -> int:
        """The most connections of which one process can hold one end."""
        return max(1, self.open_files - FDS_RESERVED)


def of_this_machine() -> Limits:
    """The limits of child processes: their limit of open files is raised to the hard limit."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY:
        hard = 1 << 20  # the default of fs.nr_open
    return Limits(hard)


def allowed_cpus() -> list[int]:
    """The processors that this process may use, in order."""
    return sorted(os.sched_getaffinity(0))
