# AnyEvent's table of what its watchers cost, after its documentation (BENCHMARKS): timers that
# expire at once, and watchers of a descriptor that can be written, half and half, are made, called,
# and destroyed. All share one callback, which counts down to the end of the phase.
#
# bytes: of resident memory for one watcher. create_us, invoke_us, destroy_us: for one.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use AnyEvent;
use Getopt::Long;
use Subject;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

use constant PAGE => 4096;

GetOptions("watchers=i" => \my $watchers, "iterations=i" => \my $iterations) or exit 2;
$watchers //= 16_000;
pipe my $reader, my $writer or die "pipe: $!\n";

Subject::check();
# What the model needs once for all is not a watcher's.
measure(50);
Subject::tell(map { measure($watchers) } 1 .. $iterations // 1);

sub measure {
    my ($count) = @_;
    my ($left, $over) = ($count, AE::cv);
    my $callback = sub { --$left or $over->send };
    # The list is the program's own: its elements are there before.
    my @made = (0) x $count;
    my $n = 0;

    my $bytes = -resident();
    my $create_s = -now();
    $_ = ++$n % 2 ? AE::io $writer, 1, $callback : AE::timer 0, 0, $callback for @made;
    $create_s += now();
    $bytes += resident();

    my $invoke_s = -now();
    $over->recv;
    $invoke_s += now();

    my $destroy_s = -now();
    # From the last to the first, as Perl takes down an array: some models search their lists.
    undef @made;
    $destroy_s += now();
    return {
        bytes => $bytes < 0 ? 0 : $bytes / $count, create_us => $create_s / $count * 1e6,
        invoke_us => $invoke_s / $count * 1e6, destroy_us => $destroy_s / $count * 1e6,
    };
}

sub now { return clock_gettime(CLOCK_MONOTONIC) }

sub resident {
    open my $file, "<", "/proc/self/statm" or die "/proc/self/statm: $!\n";
    return (split " ", <$file>)[1] * PAGE;
}
