"""What the suites share that play with socket pairs: drum, ioevent, instructions."""

from .model import Left, Parameter
from .suite import Suite

PAIRS = Parameter("pairs", "socket pairs; clamped to the limit of open files", (1000,))
ACTIVE = Parameter("active", "hand-overs under way at once; at most as many as pairs", (100,))
TIMEOUTS = Parameter("timeouts", "a 10 to 11 s idle timeout on each watcher, reset on each read; "
                     "alone it means yes", (False,), flag=True)
# Descriptors that a loop has open besides its sockets: streams, wake-up, what a library keeps.
FDS_BESIDES = 24


class PairsSuite(Suite):
    """The program is the drum's."""

    program = "drum"

    def adjust(self, params, limits):
        """Pairs within the limit of open files, and no more active than there are pairs."""
        params["pairs"] = min(params["pairs"], limits.pairs_max)
        if params["active"] > params["pairs"]:
            raise Left(f"{params['active']:,} active are more than {params['pairs']:,} pairs")
        return params

    def adjusted_why(self, limits):
        return f"the limit of open files is {limits.open_files:,}"

    def unfit(self, subject, cell):
        """select's limit: descriptors below 1024."""
        if subject.fds_max and 2 * cell.get("pairs") + FDS_BESIDES > subject.fds_max:
            return f"{subject.backend} ends at {subject.fds_max:,} descriptors"
        return None
