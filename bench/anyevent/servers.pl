# The servers of AnyEvent's two tables, after their description in its documentation (BENCHMARKS):
# each has a socket pair, a watcher that waits for input on one end, and a timeout that never
# expires. A byte that arrives is passed on to a random other server, and the timeout is made anew.
#
# create_us: for a socket pair and its two watchers. request_us: for one byte that is passed on.
# The program is the same for all; PERL_ANYEVENT_MODEL says on whose loop AnyEvent runs.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use AnyEvent;
use Getopt::Long;
use POSIX ();
use Socket;
use Subject;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my %tables = (large => {pairs => 10_000, active => 100}, small => {pairs => 8, active => 3});
# Not used for servers: streams, what a loop keeps, what Perl opens to load a module.
use constant FDS_BESIDES => 100;
# A socket pair, and the copy that AnyEvent makes of a handle on some of its loops.
use constant FDS_PER_PAIR => 3;
# Fewer servers are made so often that making them can be timed.
use constant CREATED_MIN => 400;
use constant TIMEOUT_S => 1000;

GetOptions("table=s" => \my $table, "milliseconds=i" => \my $milliseconds,
           "iterations=i" => \my $iterations)
    or exit 2;
my $cell = $tables{$table // "large"} or die "no such table: $table\n";
my $pairs = pairs_here($cell->{pairs});
my $active = $cell->{active};
die "only $pairs pairs fit into the limit of open files\n" if $active > $pairs;

my (@servers, $requests);

Subject::check();
Subject::tell(map { iteration() } 1 .. $iterations // 1);

sub iteration {
    my $create_s = create();
    if ((my $repeats = int(CREATED_MIN / $pairs)) > 0) {
        # What the first ones need once for all does not count, where it would be most of it.
        $create_s = 0;
        for (1 .. $repeats) {
            # Their watchers' callbacks hold the servers.
            delete @$_{qw(io timeout)} for @servers;
            @servers = ();
            $create_s += create() / $repeats;
        }
    }
    my $request_s = request(($milliseconds // 500) / 1000);
    return {create_us => $create_s * 1e6, request_us => $request_s * 1e6, sockets => 2 * $pairs,
            requests => $requests};
}

sub create {
    my $began = now();
    for (1 .. $pairs) {
        socketpair my $near, my $far, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die "socketpair: $!\n";
        my $server = {near => $near, far => $far};
        $server->{io} = AE::io $near, 0, sub {
            sysread $server->{near}, my $byte, 1;
            syswrite $servers[rand @servers]{far}, $byte;
            $server->{timeout} = AE::timer TIMEOUT_S, 0, \&expired;
            ++$requests;
        };
        $server->{timeout} = AE::timer TIMEOUT_S, 0, \&expired;
        push @servers, $server;
    }
    return (now() - $began) / $pairs;
}

sub expired { die "a timeout has expired\n" }

# A tenth of the time to warm up, and then what is measured.
sub request {
    my ($seconds) = @_;
    srand 20;
    syswrite $servers[$_ * int(@servers / $active)]{far}, "x" for 0 .. $active - 1;
    pass($seconds / 10);
    $requests = 0;
    my $took = pass($seconds);
    die "nothing was passed on\n" if !$requests;
    return $took / $requests;
}

sub pass {
    my ($seconds) = @_;
    my $over = AE::cv;
    my $began = now();
    my $timer = AE::timer $seconds, 0, sub { $over->send };
    $over->recv;
    return now() - $began;
}

sub now { return clock_gettime(CLOCK_MONOTONIC) }

sub pairs_here {
    my ($wanted) = @_;
    my $limit = POSIX::sysconf(POSIX::_SC_OPEN_MAX()) // 1024;
    my $fitting = int(($limit - FDS_BESIDES) / FDS_PER_PAIR);
    return $wanted < $fitting ? $wanted : $fitting;
}
