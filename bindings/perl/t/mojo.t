# What Mojo::IOLoop requires of a reactor, on Tambour.
use strict;
use warnings;

use Test::More;

BEGIN {
    eval "require Mojo::Reactor; 1" or plan skip_all => "Mojolicious is not installed";
    $ENV{MOJO_REACTOR} = "Mojo::Reactor::Tambour";
}
use Mojo::IOLoop;
use Mojo::Promise;
use Mojo::Reactor::Tambour;
use Mojo::Server::Daemon;
use Mojo::UserAgent;
use Socket;
use Tambour;

my $reactor = Mojo::IOLoop->singleton->reactor;
is ref $reactor, "Mojo::Reactor::Tambour", "MOJO_REACTOR selects the reactor";
is ref Mojo::Reactor::Tambour->new, "Mojo::Reactor::Poll", "a second reactor falls back";
is ref Mojo::IOLoop->new->reactor, "Mojo::Reactor::Poll", "and so does a second loop";
my $limit = Tambour::timer 60, 0, sub { die "the test takes too long" };
$limit->stop;

{
    my $order;
    for (1 .. 50) {    # On a busy machine, the timer for "a" may be started too late.
        $order = "";
        $reactor->timer (0.02 => sub { $order .= "b" });
        $reactor->timer (0.01 => sub { $order .= "a" });
        $reactor->next_tick (sub { $order .= "n"; ok $reactor->is_running, "is running" });
        my $removed = $reactor->timer (0.01 => sub { $order .= "x" });
        ok $reactor->remove ($removed), "a timer was removed";
        ok !$reactor->remove ($removed), "and is no longer there";
        ok !$reactor->is_running, "is not running";
        $reactor->start;
        last if $order eq "nab";
    }
    is $order, "nab", "the reactor ends when nothing is left";
}

{
    my ($count, $again) = (0, 0);
    my $recurring = $reactor->recurring (0.002 => sub { $reactor->stop if ++$count == 3 });
    $reactor->start;
    is $count, 3, "a recurring timer; stop() ends start()";
    $reactor->again ($recurring, 0.001);
    $reactor->one_tick;
    is $count, 4, "again() keeps it recurring";
    $reactor->one_tick;
    is $count, 5, "with the new interval";
    $reactor->remove ($recurring);
    my $idle = $reactor->timer (0.02 => sub { $again++ });
    my $keep;
    $keep = $reactor->recurring (0.005 => sub {
        return $reactor->again ($idle) if ++$count < 13;
        $reactor->remove ($keep);
    });
    $reactor->start;
    is $again, 1, "again() delays a timer";
    ok !eval { $reactor->again ($idle); 1 }, "a timer that has expired cannot start again";
    like $@, qr/^Timer not active/, "the message";
}

{
    # Nested runs end together.
    my @events;
    $reactor->timer (0.001 => sub {
        $reactor->timer (0.001 => sub { $reactor->stop });
        $reactor->one_tick;
        push @events, "inner";
    });
    $reactor->timer (30 => sub { push @events, "late" });
    $reactor->start;
    is "@events", "inner", "stop() ends the outer run, too";
    $reactor->stop;    # Without effect.
    my $done;
    $reactor->timer (0.001 => sub { $done = 1; $reactor->reset });
    $reactor->start;
    ok $done, "reset() removes everything";
}

{
    socketpair my $near, my $far, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die "socketpair: $!";
    my ($readable, $writable) = (0, 0);
    $reactor->io ($near => sub { pop () ? $writable++ : $readable++ });
    $reactor->one_tick;
    is "$readable $writable", "0 1", "writable";
    syswrite $far, "x";
    $reactor->one_tick;
    ok $readable == 1 && $writable == 2, "readable and writable";
    $reactor->watch ($near, 1, 0);
    $reactor->one_tick;
    ok $readable == 2 && $writable == 2, "only readable";
    $reactor->watch ($near, 0, 0);
    $reactor->timer (0.001 => sub { });
    $reactor->one_tick;
    ok $readable == 2 && $writable == 2, "nothing is watched";
    ok !eval { $reactor->watch ($far, 1, 0); 1 }, "a handle that was not added cannot be watched";
    $reactor->watch ($near, 1, 1);
    $reactor->remove ($near);
    $reactor->start;
    ok $readable == 2 && $writable == 2, "removed";
}

{
    my @errors;
    my $subscriber = $reactor->on (error => sub { push @errors, pop });
    $reactor->timer (0.001 => sub { die "on purpose\n" });
    $reactor->start;
    is @errors, 1, "an exception is emitted";
    like $errors[0], qr/^Timer failed: on purpose/, "with its text";
    $reactor->unsubscribe (error => $subscriber);
}

{
    # Watchers of Tambour in the same loop.
    my $count = 0;
    my $timer;
    $timer = Tambour::timer 0.001, 0.001, sub { undef $timer if ++$count == 5 };
    $reactor->start;
    is $count, 5, "watchers of Tambour keep the reactor running";
}

{
    $limit->start;
    my $daemon = Mojo::Server::Daemon->new (listen => ["http://127.0.0.1"], silent => 1);
    $daemon->unsubscribe ("request")->on (request => sub {
        my (undef, $transaction) = @_;

        $transaction->res->code (200);
        $transaction->res->body ($transaction->req->url->path . "!");
        Mojo::IOLoop->timer (0.001 => sub { $transaction->resume });
    });
    $daemon->start;
    my $port = $daemon->ports->[0];
    my $agent = Mojo::UserAgent->new;
    my @bodies;
    Mojo::Promise->all (map { $agent->get_p ("http://127.0.0.1:$port/$_") } 1 .. 50)->then (sub {
        @bodies = map { $_->[0]->res->body } @_;
    })->wait;
    is_deeply \@bodies, [map { "/$_!" } 1 .. 50], "fifty requests at a time";
    $daemon->stop;
    $limit->stop;
}

done_testing;
