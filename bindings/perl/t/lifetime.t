# Tests the lifetime of watchers: destruction, references, memory.
use strict;
use warnings;

use POSIX ();
use Scalar::Util qw(weaken);
use Socket;
use Tambour;
use Test::More;

my %kinds = (
    io => sub { Tambour::io \*STDOUT, Tambour::READ, $_[0] },
    timer => sub { Tambour::timer 99, 0, $_[0] },
    wall => sub { Tambour::wall 9e9, 0, $_[0] },
    signal => sub { Tambour::signal "USR1", $_[0] },
    child => sub { Tambour::child 0, 0, $_[0] },
    stat => sub { Tambour::stat "/", 0, $_[0] },
    map { my $kind = $_; no strict "refs"; $kind => sub { &{"Tambour::$kind"}($_[0]) } }
        qw(idle fork async prepare check cleanup),
);

{
    package Guard;
    our $alive = 0;
    sub new { ++$alive; bless {} }
    sub DESTROY { --$alive }
}
sub guarded { my $guard = Guard->new; return sub { $guard } }

for my $kind (sort keys %kinds) {
    my $make = $kinds{$kind};
    my $w = $make->(guarded());
    is $Guard::alive, 1, "$kind: the watcher holds its callback";
    weaken(my $weak = $w);
    undef $w;
    is $Guard::alive, 0, "$kind: the callback is freed with the watcher";
    is $weak, undef, "$kind: the watcher is freed";

    # A due watcher is destroyed before its callback, inside it, and by another callback.
    next if $kind eq "child";
    my $calls = 0;
    $w = $make->(sub { ++$calls });
    $w->feed;
    undef $w;
    Tambour::run_ready();
    is $calls, 0, "$kind: destroyed while due";
    $w = $make->(sub { ++$calls; undef $w });
    $w->feed;
    Tambour::run_ready();
    is $calls, 1, "$kind: destroyed inside its own callback";
    my $other = $make->(sub { fail "called though destroyed" });
    $w = $make->(sub { undef $other; $w->stop });
    $_->feed for $w, $other;
    Tambour::run_ready();
    ok !$w->started, "$kind: stopped";

    # A callback is replaced while it runs.
    my @called;
    $w = $make->(sub { push @called, 1; $w->cb(sub { push @called, 2 }) });
    for (1, 2) { $w->feed; Tambour::run_ready() }
    is_deeply [sort grep { !$called[$_ - 1] } 1, 2], [], "$kind: cb replaces";
    $w->cb->();
    eval { $$w = 1 };
    like $@, qr/read-only/, "$kind: the scalar is read-only";
    undef $w;
}

{
    # Objects blessed into the class that are not watchers.
    for my $false (bless([], "Tambour::IO"), bless(\my $x, "Tambour::Timer"), undef, 1, {}) {
        eval { Tambour::Watcher::stop($false) };
        like $@, qr/not a/, "not a watcher";
    }
    my $timer = Tambour::timer 9, 0, sub {};
    eval { Tambour::IO::fd($timer) };
    like $@, qr/not an io watcher/, "a watcher of another kind";
    $timer->DESTROY;
    eval { $timer->stop };
    like $@, qr/not a/, "a destroyed watcher";
}
{
    # Many watchers are created, fed and destroyed in random order.
    my ($calls, @w) = 0;
    srand 7;
    for my $round (1 .. 30) {
        my $callback = sub { ++$calls; splice @w, rand @w, 1 if @w };
        push @w, Tambour::timer(rand() < 0.5 ? 0 : 9, 0, $callback) for 1 .. 300;
        $_->feed for grep { rand() < 0.3 } @w;
        splice @w, rand @w, 1 for 1 .. 150;
        Tambour::run_ready();
    }
    cmp_ok $calls, ">", 1000, "many callbacks are called";
    @w = ();
    is Tambour::due(), 0, "no callback is left due";
}
{
    # The callback that sends a condvar may release the last reference to it.
    my @condvars = {};
    my $send = Tambour::timer 0, 0, sub { $condvars[0]{_ae_sent} = 1; @condvars = () };
    my $limit = Tambour::timer 60, 0, sub {
        print "not ok - recv does not return\n";
        POSIX::_exit(1);
    };
    Tambour::_ae_wait($condvars[0]);
    pass "a condvar is kept alive during the wait";
}
{
    # threads::shared replaces the destroy hook; DESTROY then destroys the watchers.
    my $out = qx($^X @{[map { "-I$_" } @INC]} t/hook_taken.pl 2>&1);
    is $out, "freed\n", "destroyed after the hook was replaced";
}
done_testing;
