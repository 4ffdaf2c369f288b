# Tests running and stopping the loop, nested runs, and exceptions in callbacks.
use strict;
use warnings;

use Tambour;
use Test::More;
use Time::HiRes ();

sub later(&) { my ($code) = @_; my $w; $w = Tambour::timer 0, 0, sub { undef $w; $code->() }; () }

{
    Tambour::run();
    Tambour::run_once();
    Tambour::run_ready();
    pass "run functions return without active watchers";

    my $calls = 0;
    my @w = map { Tambour::timer $_ / 100, 0, sub { ++$calls } } 1 .. 3;
    Tambour::run();
    is $calls, 3, "run returns when no active watcher is left";

    Tambour::stop();
    my $w = Tambour::timer 0, 0, sub { ++$calls };
    Tambour::run();
    is $calls, 3, "stop before run makes it return at once";
    Tambour::run();
    is $calls, 4, "stop affects only one run";

    my $many = 0;
    my @both = map { Tambour::timer 0, 0, sub { ++$many; Tambour::stop() } } 1, 2;
    Tambour::run();
    is $many, 2, "callbacks of the iteration run after stop";
}
{
    my @order;
    my $slow = Tambour::timer 100, 0, sub { push @order, "slow" };
    my $fast = Tambour::timer 0, 0, sub { push @order, "fast" };
    Tambour::run_once();
    is_deeply \@order, ["fast"], "run_once";
    Tambour::run_ready();
    is_deeply \@order, ["fast"], "run_ready does not wait";
    later { Tambour::stop() };
    Tambour::run_once();
    $slow->set(0.01);
    Tambour::run();
    is_deeply \@order, [qw(fast slow)], "a stop in run_once does not affect the next run";
}
{
    my @order;
    my $inner = Tambour::timer 0.02, 0, sub { push @order, "inner"; Tambour::stop() };
    my @w = (Tambour::timer(0, 0, sub {
        push @order, "outer";
        Tambour::run();
        push @order, "again";
    }), Tambour::timer(0, 0, sub { push @order, "due in the outer run" }));
    Tambour::run();
    is_deeply \@order, ["outer", "due in the outer run", "inner", "again"],
        "nested runs";
}
{
    my @died;
    local $Tambour::DIED = sub { push @died, $@ };
    my $after = 0;
    $@ = "the program's";
    my @w = map { Tambour::timer 0, 0, $_ } sub { die "one\n" }, sub { ++$after },
        sub { die { two => 2 } }, sub { ++$after };
    Tambour::run();
    is_deeply \@died, ["one\n", {two => 2}], "DIED receives the exceptions of callbacks";
    is $after, 2, "the other callbacks are called";
    is $@, "the program's", "\$\@ is preserved";

    @died = ();
    @w = map { Tambour::timer 0, 0, $_ } sub { die "three\n" }, sub { ++$after };
    Tambour::run_once();
    is $after, 3, "run_once calls the remaining callbacks";

    local $Tambour::DIED = sub { die "in DIED" };
    later { die "four" };
    Tambour::run();
    pass "an exception in DIED";
}
{
    my @warned;
    local $SIG{__WARN__} = sub { push @warned, @_ };
    later { die "oops\n" };
    Tambour::run();
    is_deeply \@warned, ["Tambour: error in callback (ignoring): oops\n"], "DIED prints a warning by default";
}
{
    my @died;
    local $Tambour::DIED = sub { push @died, $@ };
    my $passes = 0;
    for my $pass (1 .. 3) {
        later { no warnings; last };
        later { no warnings; next };
        Tambour::run();
        ++$passes;
    }
    is $passes, 3, "last and next do not leave a loop of the program";
    like $died[0], qr/outside a loop/, "last and next die";
}
{
    local $SIG{ALRM} = sub { die "alarm\n" };
    my $w = Tambour::timer 60, 0, sub {};
    eval { Time::HiRes::alarm(0.05); Tambour::run() };
    is $@, "alarm\n", "an exception in a handler of %SIG leaves run";
    my $handled = 0;
    local $SIG{ALRM} = sub { ++$handled };
    Time::HiRes::alarm(0.05, 0.05);
    Tambour::run_once();
    Time::HiRes::alarm(0);
    ok $handled && $w->started, "run_once returns after a handler of %SIG";
}
{
    my ($before, $now) = (Tambour::now, Tambour::time);
    select undef, undef, undef, 0.02;
    is Tambour::now, $before, "now does not change outside of the loop";
    Tambour::update_now;
    cmp_ok Tambour::now, ">=", $before + 0.0199, "update_now updates it";
    my $start = Tambour::time;
    Tambour::update_now;
    my $w = Tambour::timer 100, 0, sub {};
    Tambour::suspend();
    my $passed = Tambour::time - $start;
    select undef, undef, undef, 0.05;
    Tambour::resume();
    cmp_ok $w->remaining, ">", 100 - $passed - 0.02, "no time passes for timers while suspended";
}
for my $leave ("exit 7", "die 'x'; exit 7", "kill TERM => \$\$; sleep 9") {
    my $program = "my \$w = Tambour::timer 0, 0, sub { $leave }; "
        . "my \$v = Tambour::timer 0.1, 0, sub { exit 7 }; Tambour::run()";
    system $^X, (map { "-I$_" } @INC), "-MTambour", "-e", "local \$SIG{__WARN__} = sub {}; "
        . "\$SIG{TERM} = sub { exit 7 }; $program";
    is $? >> 8, 7, "ends the program: $leave";
}
done_testing;
