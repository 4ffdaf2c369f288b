# Tests that a Perl thread has its own loop and none of its parent's watchers.
use strict;
use warnings;

use Config;
use Test::More;

BEGIN {
    plan skip_all => "this perl is built without threads" if !$Config{useithreads};
    require threads;
}
use Tambour;

my $calls = 0;
my $timer = Tambour::timer 0.05, 0, sub { ++$calls; Tambour::stop() };
my @threads = map { my $n = $_; threads->create(sub {
    return "the watcher was cloned" if defined $timer && ref $timer ne "SCALAR";
    my $mine = 0;
    my @w = map { Tambour::timer $_ / 100, 0, sub { Tambour::stop() if ++$mine == 3 } } 1 .. 3;
    # Not destroyed before the thread ends.
    our @left = (Tambour::timer(99, 0, sub {}), Tambour::io(\*STDOUT, Tambour::READ, sub {}));
    Tambour::run();
    return $mine;
}) } 1 .. 3;
is $_->join, 3, "a loop in a thread" for @threads;
Tambour::run();
is $calls, 1, "the loop of the parent is unaffected";
done_testing;
