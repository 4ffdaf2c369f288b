# The table of watcher costs in AnyEvent's documentation (section BENCHMARKS). Creates, invokes and
# destroys watchers: one half are timers that expire at once, the other half watch a writable
# descriptor. All share one callback, which counts down to the end of the phase.
#
# bytes: resident memory per watcher. create_us, invoke_us, destroy_us: time per watcher.
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
# Exclude one-time costs of the model.
measure(50);
Subject::report(map { measure($watchers) } 1 .. $iterations // 1);

sub measure {
    my ($count) = @_;
    my ($left, $over) = ($count, AE::cv);
    my $callback = sub { --$left or $over->send };
    # Allocate the list beforehand: its memory belongs to the program, not to the watchers.
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
    # Perl destroys an array from the last element to the first; some models search their lists.
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
