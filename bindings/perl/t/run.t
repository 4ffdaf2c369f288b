# How a run starts, ends, nests, and what leaves callbacks.
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
    pass "nothing is left to wait for";

    my $calls = 0;
    my @w = map { Tambour::timer $_ / 100, 0, sub { ++$calls } } 1 .. 3;
    Tambour::run();
    is $calls, 3, "run: until nothing is left";

    Tambour::stop();
    my $w = Tambour::timer 0, 0, sub { ++$calls };
    Tambour::run();
    is $calls, 3, "stop before a run ends that at once";
    Tambour::run();
    is $calls, 4, "and only that";

    my $many = 0;
    my @both = map { Tambour::timer 0, 0, sub { ++$many; Tambour::stop() } } 1, 2;
    Tambour::run();
    is $many, 2, "stop lets the callbacks of the turn finish";
}
{
    my @order;
    my $slow = Tambour::timer 0.05, 0, sub { push @order, "slow" };
    my $fast = Tambour::timer 0, 0, sub { push @order, "fast" };
    Tambour::run_once();
    is_deeply \@order, ["fast"], "once";
    Tambour::run_ready();
    is_deeply \@order, ["fast"], "ready: does not wait";
    later { Tambour::stop() };
    Tambour::run_once();
    Tambour::run();
    is_deeply \@order, [qw(fast slow)], "a stop in run_once is not for the next run";
}
{
    my @order;
    my $inner = Tambour::timer 0.02, 0, sub { push @order, "inner"; Tambour::stop() };
    my @w = (Tambour::timer(0, 0, sub {
        push @order, "outer";
        Tambour::run();
        push @order, "again";
    }), Tambour::timer(0, 0, sub { push @order, "what the outer run had still to call" }));
    Tambour::run();
    is_deeply \@order, ["outer", "what the outer run had still to call", "inner", "again"],
        "nested";
}
{
    my @died;
    local $Tambour::DIED = sub { push @died, $@ };
    my $after = 0;
    $@ = "the program's";
    my @w = map { Tambour::timer 0, 0, $_ } sub { die "one\n" }, sub { ++$after },
        sub { die { two => 2 } }, sub { ++$after };
    Tambour::run();
    is_deeply \@died, ["one\n", {two => 2}], "what callbacks die of";
    is $after, 2, "the others are called";
    is $@, "the program's", "what is in \$\@ stays";

    @died = ();
    @w = map { Tambour::timer 0, 0, $_ } sub { die "three\n" }, sub { ++$after };
    Tambour::run_once();
    is $after, 3, "run_once calls the rest too";

    local $Tambour::DIED = sub { die "in turn" };
    later { die "four" };
    Tambour::run();
    pass "a handler that dies itself";
}
{
    my @warned;
    local $SIG{__WARN__} = sub { push @warned, @_ };
    later { die "oops\n" };
    Tambour::run();
    is_deeply \@warned, ["Tambour: error in callback (ignoring): oops\n"], "the default";
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
    is $passes, 3, "no loop of the program's is left";
    like $died[0], qr/outside a loop/, "but this is said";
}
{
    local $SIG{ALRM} = sub { die "alarm\n" };
    my $w = Tambour::timer 60, 0, sub {};
    Time::HiRes::alarm(0.05);
    eval { Tambour::run() };
    is $@, "alarm\n", "a handler of %SIG interrupts the wait, and may die";
    my $handled = 0;
    local $SIG{ALRM} = sub { ++$handled };
    Time::HiRes::alarm(0.05);
    Tambour::run_once();
    is $handled, 1, "run_once returns for one";
}
{
    my ($before, $now) = (Tambour::now, Tambour::time);
    select undef, undef, undef, 0.02;
    is Tambour::now, $before, "now stands still";
    Tambour::update_now;
    cmp_ok Tambour::now, ">=", $before + 0.0199, "until it is told";
    my $w = Tambour::timer 0.03, 0, sub { Tambour::stop() };
    Tambour::suspend();
    select undef, undef, undef, 0.05;
    Tambour::resume();
    cmp_ok $w->remaining, ">", 0.01, "suspended: no time passes for timers";
}
for my $leave ("exit 7", "die 'x'; exit 7", "kill TERM => \$\$; sleep 9") {
    my $program = "my \$w = Tambour::timer 0, 0, sub { $leave }; "
        . "my \$v = Tambour::timer 0.1, 0, sub { exit 7 }; Tambour::run()";
    system $^X, (map { "-I$_" } @INC), "-MTambour", "-e", "local \$SIG{__WARN__} = sub {}; "
        . "\$SIG{TERM} = sub { exit 7 }; $program";
    is $? >> 8, 7, "leaves the program: $leave";
}
done_testing;
