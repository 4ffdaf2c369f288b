# The servers of two tables in AnyEvent's documentation (section BENCHMARKS). Each server has a socket
# pair, a watcher for input on one end, and a timeout that never expires. A server forwards each byte
# to a random server and creates its timeout again.
#
# create_us: time to create a socket pair and its two watchers. request_us: time to forward one byte.
# The program is the same for all subjects; PERL_ANYEVENT_MODEL selects the event loop of AnyEvent.
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
# Reserved: standard streams, descriptors of the loop, files that Perl opens to load modules.
use constant FDS_RESERVED => 100;
# A socket pair, and the duplicate of a handle that AnyEvent makes with some models.
use constant FDS_PER_PAIR => 3;
# If there are fewer servers, their creation is repeated until it can be timed.
use constant CREATED_MIN => 400;
use constant TIMEOUT_S => 1000;

GetOptions("table=s" => \my $table, "milliseconds=i" => \my $milliseconds,
           "iterations=i" => \my $iterations)
    or exit 2;
my $cell = $tables{$table // "large"} or die "no such table: $table\n";
my $pairs = possible_pairs($cell->{pairs});
my $active = $cell->{active};
die "only $pairs socket pairs fit into the limit of open files\n" if $active > $pairs;

my (@servers, $requests);

Subject::check();
Subject::report(map { iteration() } 1 .. $iterations // 1);

sub iteration {
    my $create_s = create();
    if ((my $repeats = int(CREATED_MIN / $pairs)) > 0) {
        # The first creation includes one-time costs, which would dominate here; it does not count.
        $create_s = 0;
        for (1 .. $repeats) {
            # Break the reference cycle: the callbacks of the watchers refer to the servers.
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

# Warms up for a tenth of the time, then measures.
sub request {
    my ($seconds) = @_;
    srand 20;
    syswrite $servers[$_ * int(@servers / $active)]{far}, "x" for 0 .. $active - 1;
    forward_for($seconds / 10);
    $requests = 0;
    my $took = forward_for($seconds);
    die "no byte was forwarded\n" if !$requests;
    return $took / $requests;
}

sub forward_for {
    my ($seconds) = @_;
    my $over = AE::cv;
    my $began = now();
    my $timer = AE::timer $seconds, 0, sub { $over->send };
    $over->recv;
    return now() - $began;
}

sub now { return clock_gettime(CLOCK_MONOTONIC) }

sub possible_pairs {
    my ($wanted) = @_;
    my $limit = POSIX::sysconf(POSIX::_SC_OPEN_MAX()) // 1024;
    my $fitting = int(($limit - FDS_RESERVED) / FDS_PER_PAIR);
    return $wanted < $fitting ? $wanted : $fitting;
}
