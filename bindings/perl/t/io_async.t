# The acceptance tests for loops that IO::Async ships, on Tambour.
#
# TAMBOUR_IO_ASYNC_TESTS names some of them. `timer`, `idle` and `control` have upper limits for
# durations, which a busy machine may exceed: with one of them, there are up to three attempts.
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
if ($tests =~ /timer|idle|control/ && !$ENV{TAMBOUR_IO_ASYNC_ATTEMPT}) {
    $ENV{TAMBOUR_IO_ASYNC_ATTEMPT} = 1;
    my $output;
    for (1 .. 3) {
        open my $attempt, "-|", $^X, (map { "-I$_" } @INC), $0 or die "cannot start an attempt: $!";
        $output = do { local $/; <$attempt> };
        close $attempt;
        last if $? == 0;
        print STDERR "attempt $_ failed:\n$output";
    }
    print $output;
    exit ($? ? 1 : 0);
}
run_tests "IO::Async::Loop::Tambour", split " ", $tests;
