# The acceptance tests for loops that IO::Async ships, on Tambour.
#
# TAMBOUR_IO_ASYNC_TESTS names some of them. `timer`, `idle` and `control` compare durations, which a
# busy machine may exceed.
use strict;
use warnings;

use Test::More;

BEGIN {
    for my $module (qw(IO::Async::Loop Test::Fatal Test::Metrics::Any Test::Refcount)) {
        eval "require $module; 1" or plan skip_all => "$module is not installed";
    }
}
use IO::Async::LoopTests;

my $tests = $ENV{TAMBOUR_IO_ASYNC_TESTS} // "io timer signal idle process control metrics";
run_tests "IO::Async::Loop::Tambour", split " ", $tests;
