# Tests every watcher type through the functions of Tambour.
use strict;
use warnings;
no warnings "once";

use File::Temp qw(tempdir);
use POSIX ();
use Socket;
use Tambour;
use Test::More;

my $guard = Tambour::timer 60, 0, sub { diag "timeout"; POSIX::_exit(1) };

sub pair {
    socketpair my $one, my $other, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die "socketpair: $!";
    return ($one, $other);
}

sub run_until_stopped { Tambour::run() }

subtest io => sub {
    my ($one, $other) = pair();
    my @args;  # Contains no reference to the watcher, to avoid a cycle.
    my $w = Tambour::io $one, Tambour::READ | Tambour::WRITE, sub {
        @args = ("$_[0]", $_[1]);
        Tambour::stop();
    };
    isa_ok $w, "Tambour::IO";
    run_until_stopped();
    is $args[0], "$w", "first argument: the watcher";
    is $args[1], Tambour::WRITE, "second argument: the events";
    is $w->fd, fileno $one, "fd";
    is $w->events, Tambour::READ | Tambour::WRITE, "events";
    $w->events(Tambour::READ);
    syswrite $other, "x";
    run_until_stopped();
    is $args[1], Tambour::READ, "events changed";
    my ($third, $fourth) = pair();
    $w->set($third, Tambour::READ);
    syswrite $fourth, "x";
    run_until_stopped();
    is $w->fd, fileno $third, "set to another descriptor";
    $w->stop;
    ok !$w->started, "stopped";
    $w->start;
    ok $w->started, "started";
    is Tambour::io(fileno $one, Tambour::READ, sub {})->fd, fileno $one, "descriptor number";
    is Tambour::io(*STDOUT{IO}, Tambour::WRITE, sub {})->fd, 1, "IO reference";
    for my $bad (undef, "", -1, [], "no such handle", \*main::NONE, 1e30) {
        eval { Tambour::io $bad, Tambour::READ, sub {} };
        like $@, qr/file handle|Bad filehandle/, "invalid handle: " . ($bad // "undef");
    }
    eval { Tambour::io $one, Tambour::READ, "no code" };
    ok $@, "invalid callback: $@";
};

subtest timer => sub {
    my $calls = 0;
    my $w = Tambour::timer 0.01, 0, sub { ++$calls; Tambour::stop() };
    isa_ok $w, "Tambour::Timer";
    cmp_ok $w->remaining, ">", 0, "remaining";
    run_until_stopped();
    ok !$w->started, "one-shot";
    is $w->remaining, undef, "no remaining time when stopped";
    $w->again;
    run_until_stopped();
    is $calls, 2, "again";
    $w->set(0.001, 0.001);
    run_until_stopped() for 1 .. 3;
    is $calls, 5, "repeating";
    ok $w->started, "stays started";
    $w->set(100);
    cmp_ok $w->remaining, ">", 90, "set to one-shot";
    eval { Tambour::timer "nan", 0, sub {} };
    like $@, qr/not a number/, "not a number";
    my $never = Tambour::timer "inf", 0, sub { fail "expired: inf" };
    my $late = Tambour::timer 1e300, 0, sub { fail "expired: 1e300" };
    my $soon = Tambour::timer -1e300, 0, sub { Tambour::stop() };
    run_until_stopped();
    pass "out-of-range times";
};

subtest wall => sub {
    my $w = Tambour::wall Tambour::time + 0.02, 0, sub { Tambour::stop() };
    isa_ok $w, "Tambour::Wall";
    my $at = $w->at;
    run_until_stopped();
    cmp_ok Tambour::time, ">=", $at, "not early";
    ok !$w->started, "one-shot";
    my $calls = 0;
    my $every = Tambour::wall 0, 0.02, sub { Tambour::stop() if ++$calls == 2 };
    run_until_stopped();
    is $calls, 2, "interval";
    my $multiple = $every->at * 50;
    cmp_ok abs($multiple - int($multiple + 0.5)), "<", 0.01, "expires at multiples of the interval";
    $every->set(Tambour::time + 1000);
    cmp_ok $every->at, ">", Tambour::time + 900, "set";
};

subtest signal => sub {
    my @received;
    my $w = Tambour::signal "USR1", sub { push @received, $_[1]; Tambour::stop() };
    isa_ok $w, "Tambour::Signal";
    is $w->number, POSIX::SIGUSR1(), "number";
    kill USR1 => $$;
    run_until_stopped();
    my $by_number = Tambour::signal POSIX::SIGUSR1(), sub { push @received, "number" };
    my $by_full_name = Tambour::signal "SIGUSR1", sub { push @received, "full" };
    Tambour::feed_signal("USR1");
    run_until_stopped();
    is_deeply [sort @received], [(POSIX::SIGUSR1()) x 2, "full", "number"], "a fed signal reaches all watchers";
    for my $bad ("NONE", 0, -1, 1000, "") {
        eval { Tambour::signal $bad, sub {} };
        like $@, qr/no such signal/, "no such signal: $bad";
    }
    eval { Tambour::signal "KILL", sub {} };
    like $@, qr/cannot start/, "a signal that cannot be caught";
};

subtest child => sub {
    my $pid = fork // die "fork: $!";
    POSIX::_exit(3) if !$pid;
    my @args;
    my $w = Tambour::child $pid, 0, sub { @args = ("$_[0]", @_[1 .. $#_]); Tambour::stop() };
    isa_ok $w, "Tambour::Child";
    is $w->pid, $pid, "pid";
    run_until_stopped();
    is_deeply \@args, ["$w", $pid, 3 << 8], "arguments";
    is_deeply [$w->rpid, $w->rstatus], [$pid, 3 << 8], "rpid and rstatus";
    my $gone = Tambour::child $pid, 0, sub { @args = ("$_[0]", @_[1 .. $#_]); Tambour::stop() };
    run_until_stopped();
    is $args[2], -1, "a lost status";

    $pid = fork // die "fork: $!";
    if (!$pid) { sleep 60; POSIX::_exit(0) }
    my @changes;
    my $trace = Tambour::child $pid, 1, sub { push @changes, $_[2]; Tambour::stop() };
    for my $signal (qw(STOP CONT TERM)) { kill $signal => $pid; run_until_stopped() }
    ok POSIX::WIFSTOPPED($changes[0]), "stopped";
    is $changes[1], 0xffff, "continued";
    is $changes[2], POSIX::SIGTERM(), "killed";

    my %left;
    for my $code (1 .. 3) {
        my $each = fork // die "fork: $!";
        POSIX::_exit($code) if !$each;
        $left{$each} = $code;
    }
    my $calls = 0;
    my $any = Tambour::child 0, 0, sub {
        ++$calls;
        is delete $left{$_[1]}, $_[2] >> 8, "any child";
        Tambour::stop() if !%left;
    };
    my $other = Tambour::child 0, 0, sub { ++$calls };
    run_until_stopped();
    Tambour::run_ready();
    is $calls, 6, "two watchers of any child";
};

subtest "ignored SIGCHLD" => sub {
    local $SIG{CHLD} = "IGNORE";
    pipe my $reader, my $writer or die "pipe: $!";
    my $pid = fork // die "fork: $!";
    if (!$pid) { close $writer; sysread $reader, my $end, 1; POSIX::_exit(5) }
    my $status;
    my $w = Tambour::child $pid, 0, sub { $status = $_[2]; Tambour::stop() };
    is $SIG{CHLD}, "DEFAULT", "SIGCHLD is no longer ignored";
    close $writer;
    run_until_stopped();
    is $status, 5 << 8, "the status is reported";
};

subtest stat => sub {
    my $path = tempdir(CLEANUP => 1) . "/file";
    my $w = Tambour::stat $path, 0.1, sub { Tambour::stop() };
    isa_ok $w, "Tambour::Stat";
    is $w->path, $path, "path";
    is_deeply [$w->attr], [], "attr of a missing file";
    my $write = Tambour::timer 0, 0, sub { open my $file, ">", $path or die; print $file "12345" };
    run_until_stopped();
    is_deeply [$w->prev], [], "prev of a missing file";
    cmp_ok scalar(my @now = $w->attr), "==", 13, "attr has 13 values";
    Tambour::run_ready() while ($w->attr)[7] != 5;
    is_deeply [($w->attr)[0 .. 7]], [(CORE::stat $path)[0 .. 7]], "attr equals stat";
    unlink $path;
    run_until_stopped() while $w->attr;
    is_deeply [$w->attr], [], "attr of a removed file";
};

subtest "hooks of an iteration" => sub {
    my @order;
    my $timer = Tambour::timer 0, 0, sub { push @order, "timer" };
    my $prepare = Tambour::prepare sub { push @order, "prepare" };
    my $check = Tambour::check sub { push @order, "check" };
    isa_ok $prepare, "Tambour::Prepare";
    isa_ok $check, "Tambour::Check";
    Tambour::run_once();
    is_deeply \@order, [qw(prepare check timer)], "order of prepare and check";
    $_->stop for $prepare, $check;
    @order = ();
    my $idle = Tambour::idle sub { push @order, "idle"; Tambour::stop() if @order == 3 };
    isa_ok $idle, "Tambour::Idle";
    run_until_stopped();
    is_deeply \@order, [("idle") x 3], "idle";
    $idle->stop;
    @order = ();
    my $last = Tambour::prepare sub { push @order, "last" };
    my $first = Tambour::prepare sub { push @order, "first" };
    $first->priority(2);
    is $first->priority, 2, "priority";
    Tambour::run_ready();
    is_deeply \@order, [qw(first last)], "by priority";
};

subtest priority => sub {
    my @order;
    my @timers = map { my $p = $_; my $w = Tambour::timer 0, 0, sub { push @order, $p };
                       $w->priority($p); $w } 0, 2, -2, 1, -1;
    Tambour::run_once() while @order < 5;
    is_deeply \@order, [2, 1, 0, -1, -2], "order by priority within an iteration";
};

subtest async => sub {
    my $calls = 0;
    my $w = Tambour::async sub { ++$calls; Tambour::stop() };
    isa_ok $w, "Tambour::Async";
    $w->send;
    $w->send;
    ok $w->sent, "sent";
    run_until_stopped();
    is $calls, 1, "several sends are reported once";
    is scalar(my @c = $w->signal_func), 2, "signal_func";
};

subtest fork => sub {
    my ($one, $other) = pair();
    my @seen;
    my $w = Tambour::fork sub { push @seen, "fork" };
    isa_ok $w, "Tambour::Fork";
    my $reader = Tambour::io $one, Tambour::READ, sub { push @seen, "read"; Tambour::stop() };
    Tambour::run_ready();
    my $pid = CORE::fork // die "fork: $!";
    if (!$pid) {
        syswrite $other, "x";
        Tambour::run();
        POSIX::_exit("@seen" =~ /fork/ && "@seen" =~ /read/ ? 4 : 5);
    }
    waitpid $pid, 0;
    is $? >> 8, 4, "the child calls the fork callback and its watchers work";
    Tambour::run_once() while !@seen;
    is_deeply \@seen, ["read"], "the parent does not call the fork callback";
};

subtest cleanup => sub {
    my $out = qx($^X -Mblib=. -MTambour -e 'our \$w = Tambour::cleanup sub { print "bye" };' 2>&1);
    is $out, "bye", "called when the program ends";

    # Written to a file: output buffered before fork would appear twice.
    my $file = tempdir(CLEANUP => 1) . "/output";
    my $runs = sub {
        open my $script, ">", "$file.pl" or die "open: $!";
        print $script 'use Tambour; open our $out, ">>", shift; $out->autoflush;',
            'sub say_it { print $out "@_ " }', @_;
        close $script;
        unlink $file;
        is system($^X, "-Mblib=.", "$file.pl", $file), 0, "exit status 0";
        open my $output, "<", $file or die "open: $!";
        local $/;
        <$output> // ""
    };
    is $runs->('our $w = Tambour::cleanup sub { say_it "bye" };',
               'our $i = Tambour::idle sub { say_it "idle" };',
               'our @t = map { Tambour::timer 0, 0, sub { say_it "timer"; exit 0 } } 1, 2;',
               'Tambour::run();'),
        "timer bye ", "no other callback is called";
    is $runs->('our $t = Tambour::timer 0, 0, sub { say_it "timer" }; my $pid = fork;',
               'if (!$pid) { select undef, undef, undef, 0.02; exit 0 } waitpid $pid, 0; undef $t'),
        "", "not called in a child without cleanup watchers";
    is $runs->('our ($v, $w); $v = Tambour::cleanup sub { undef $w; say_it "first"; die "x" };',
               '$Tambour::DIED = sub { say_it "died" };',
               '$w = Tambour::cleanup sub { say_it "gone" };',
               'our $u = Tambour::cleanup sub { say_it "last" };'),
        "first died last ", "a cleanup callback may destroy another watcher, or die";
};

subtest feeding => sub {
    my ($one, $other) = pair();
    my @seen;
    my $w = Tambour::io $one, Tambour::READ, sub { push @seen, $_[1]; Tambour::stop() };
    $w->feed(Tambour::ERROR);
    is Tambour::due(), 1, "due";
    run_until_stopped();
    Tambour::run_ready();
    Tambour::feed_fd($one, Tambour::READ);
    run_until_stopped();
    is_deeply \@seen, [Tambour::ERROR, Tambour::READ], "fed events are reported";
};

done_testing;
