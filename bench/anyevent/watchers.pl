# The table of watcher costs in AnyEvent's documentation (section BENCHMARKS). Creates, invokes and
# destroys watchers: one half are timers that expire at once, the other half watch a writable
# descriptor. All share one callback, which counts down to the end of the phase.
#
# bytes: resident memory per watcher. create_us, invoke_us, destroy_us: time per watcher.
# BENCH_INTERFACE selects the interface of an event loop itself, instead of AnyEvent's.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use AnyEvent;
use Getopt::Long;
use Subject;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

use constant PAGE => 4096;

# The same steps with each interface. They are inserted into the code below, so that no interface
# pays for a call that a program that uses it would not make.
my %interfaces = (
    AnyEvent => {io => 'AE::io $writer, 1, $callback', timer => 'AE::timer 0, 0, $callback',
                 stop => '$over->send', run => '$over->recv'},
    EV => {io => 'EV::io $writer, EV::WRITE (), $callback', timer => 'EV::timer 0, 0, $callback',
           stop => 'EV::break ()', run => 'EV::run ()'},
    Event => {io => 'Event->io (fd => $writer, poll => "w", cb => $callback)',
              timer => 'Event->timer (after => 0, cb => $callback)',
              stop => 'Event::unloop ()', run => 'Event::loop ()',
              # A reference does not own a watcher of Event.
              destroy => '$_->cancel for reverse @made; undef @made'},
    Tambour => {io => 'Tambour::io $writer, Tambour::WRITE (), $callback',
                timer => 'Tambour::timer 0, 0, $callback',
                stop => 'Tambour::stop ()', run => 'Tambour::run ()'},
);
my $interface = $interfaces{$ENV{BENCH_INTERFACE} // "AnyEvent"}
    or die "no such interface: $ENV{BENCH_INTERFACE}\n";

GetOptions("watchers=i" => \my $watchers, "iterations=i" => \my $iterations) or exit 2;
$watchers //= 16_000;
pipe my $reader, my $writer or die "pipe: $!\n";

Subject::check();
my $measure = measure_with(%$interface);
# Exclude one-time costs of the model.
$measure->(50);
Subject::report(map { $measure->($watchers) } 1 .. $iterations // 1);

sub measure_with {
    # Perl destroys an array from the last element to the first; some models search their lists.
    my %step = (destroy => 'undef @made', @_);
    my $code = <<'END';
sub {
    my ($count) = @_;
    my ($left, $over) = ($count, AE::cv);
    my $callback = sub { --$left or <stop> };
    # Allocate the list beforehand: its memory belongs to the program, not to the watchers.
    my @made = (0) x $count;
    my $n = 0;

    my $bytes = -resident();
    my $create_s = -now();
    $_ = ++$n % 2 ? <io> : <timer> for @made;
    $create_s += now();
    $bytes += resident();

    my $invoke_s = -now();
    <run>;
    $invoke_s += now();
    die "$left watchers were not invoked" if $left > 0;

    my $destroy_s = -now();
    <destroy>;
    $destroy_s += now();
    return {
        bytes => $bytes < 0 ? 0 : $bytes / $count, create_us => $create_s / $count * 1e6,
        invoke_us => $invoke_s / $count * 1e6, destroy_us => $destroy_s / $count * 1e6,
    };
}
END
    $code =~ s/<(\w+)>/$step{$1}/g;
    return eval $code || die $@;
}

sub now { return clock_gettime(CLOCK_MONOTONIC) }

sub resident {
    open my $file, "<", "/proc/self/statm" or die "/proc/self/statm: $!\n";
    return (split " ", <$file>)[1] * PAGE;
}
