"""What the suites with socket pairs share: drum, ioevent, instructions."""

from .model import NotMeasured, Parameter
from .suite import Suite

PAIRS = Parameter("pairs", "socket pairs; clamped to the limit of open files", (1000,))
ACTIVE = Parameter("active", "bytes in flight at the same time; at most as many as pairs", (100,))
TIMEOUTS = Parameter("timeouts", "an idle timeout of 10 to 11 s on each watcher, reset on each "
                     "read; without a value it means yes", (False,), flag=True)
# Descriptors that a loop has open besides its sockets.
FDS_BESIDES = 24


class PairsSuite(Suite):
    """A suite that runs the program of the drum."""

    program = "drum"

    def adjust(self, params, limits):
        """Clamps pairs to the limit of open files; fails if more are active than there are."""
        params["pairs"] = min(params["pairs"], limits.pairs_max)
        if params["active"] > params["pairs"]:
            raise NotMeasured(f"{params['active']:,} active are more than {params['pairs']:,} "
                              "pairs")
        return params

    def adjusted_because(self, limits):
        return f"the limit of open files is {limits.open_files:,}"

    def unsupported(self, subject, cell):
        """select(2) is limited to descriptors below 1024."""
        if subject.fds_max and 2 * cell.get("pairs") + FDS_BESIDES > subject.fds_max:
            return f"{subject.backend} is limited to {subject.fds_max:,} descriptors"
        return None
