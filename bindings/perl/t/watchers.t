# Every type of watcher, in Tambour's own words.
use strict;
use warnings;
no warnings "once";

use File::Temp qw(tempdir);
use POSIX ();
use Socket;
use Tambour;
use Test::More;

my $guard = Tambour::timer 60, 0, sub { diag "takes too long"; POSIX::_exit(1) };

sub pair {
    socketpair my $one, my $other, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die "socketpair: $!";
    return ($one, $other);
}

# Runs until the callback that calls stop has been called.
sub run_until_stopped { Tambour::run() }

subtest io => sub {
    my ($one, $other) = pair();
    my @args;  # Not the watcher itself, which would hold itself.
    my $w = Tambour::io $one, Tambour::READ | Tambour::WRITE, sub {
        @args = ("$_[0]", $_[1]);
        Tambour::stop();
    };
    isa_ok $w, "Tambour::IO";
    run_until_stopped();
    is $args[0], "$w", "told which watcher";
    is $args[1], Tambour::WRITE, "and what came";
    is $w->fd, fileno $one, "its descriptor";
    is $w->events, Tambour::READ | Tambour::WRITE, "what was asked for";
    $w->events(Tambour::READ);
    syswrite $other, "x";
    run_until_stopped();
    is $args[1], Tambour::READ, "asked for less";
    my ($third, $fourth) = pair();
    $w->set($third, Tambour::READ);
    syswrite $fourth, "x";
    run_until_stopped();
    is $w->fd, fileno $third, "another descriptor";
    $w->stop;
    ok !$w->started, "stopped";
    $w->start;
    ok $w->started, "started";
    is Tambour::io(fileno $one, Tambour::READ, sub {})->fd, fileno $one, "by number";
    is Tambour::io(*STDOUT{IO}, Tambour::WRITE, sub {})->fd, 1, "by an IO reference";
    for my $bad (undef, "", -1, [], "no such handle", \*main::NONE, 1e30) {
        eval { Tambour::io $bad, Tambour::READ, sub {} };
        like $@, qr/file handle|Bad filehandle/, "no file handle: " . ($bad // "undef");
    }
    eval { Tambour::io $one, Tambour::READ, "no code" };
    ok $@, "no callback: $@";
};

subtest timer => sub {
    my $calls = 0;
    my $w = Tambour::timer 0.01, 0, sub { ++$calls; Tambour::stop() };
    isa_ok $w, "Tambour::Timer";
    cmp_ok $w->remaining, ">", 0, "remains";
    run_until_stopped();
    ok !$w->started, "once";
    is $w->remaining, undef, "nothing remains";
    $w->again;
    run_until_stopped();
    is $calls, 2, "again";
    $w->set(0.001, 0.001);
    run_until_stopped() for 1 .. 3;
    is $calls, 5, "repeating";
    ok $w->started, "and goes on";
    $w->set(100);
    cmp_ok $w->remaining, ">", 90, "set anew, and no longer repeating";
    eval { Tambour::timer "nan", 0, sub {} };
    like $@, qr/not a number/, "not a number";
    my $never = Tambour::timer "inf", 0, sub { fail "never" };
    my $late = Tambour::timer 1e300, 0, sub { fail "very late" };
    my $soon = Tambour::timer -1e300, 0, sub { Tambour::stop() };
    run_until_stopped();
    pass "times beyond all clocks";
};

subtest wall => sub {
    my $w = Tambour::wall Tambour::time + 0.02, 0, sub { Tambour::stop() };
    isa_ok $w, "Tambour::Wall";
    my $at = $w->at;
    run_until_stopped();
    cmp_ok Tambour::time, ">=", $at, "not early";
    ok !$w->started, "once";
    my $calls = 0;
    my $every = Tambour::wall 0, 0.02, sub { Tambour::stop() if ++$calls == 2 };
    run_until_stopped();
    is $calls, 2, "at an interval";
    my $place = $every->at * 50;
    cmp_ok abs($place - int($place + 0.5)), "<", 0.01, "at multiples of it";
    $every->set(Tambour::time + 1000);
    cmp_ok $every->at, ">", Tambour::time + 900, "set anew";
};

subtest signal => sub {
    my @told;
    my $w = Tambour::signal "USR1", sub { push @told, $_[1]; Tambour::stop() };
    isa_ok $w, "Tambour::Signal";
    is $w->number, POSIX::SIGUSR1(), "its number";
    kill USR1 => $$;
    run_until_stopped();
    my $by_number = Tambour::signal POSIX::SIGUSR1(), sub { push @told, "number" };
    my $by_full_name = Tambour::signal "SIGUSR1", sub { push @told, "full" };
    Tambour::feed_signal("USR1");
    run_until_stopped();
    is_deeply [sort @told], [(POSIX::SIGUSR1()) x 2, "full", "number"], "fed, to all";
    for my $bad ("NONE", 0, -1, 1000, "") {
        eval { Tambour::signal $bad, sub {} };
        like $@, qr/no such signal/, "no such signal: $bad";
    }
    eval { Tambour::signal "KILL", sub {} };
    like $@, qr/cannot start/, "cannot be caught";
};

subtest child => sub {
    my $pid = fork // die "fork: $!";
    POSIX::_exit(3) if !$pid;
    my @args;
    my $w = Tambour::child $pid, 0, sub { @args = ("$_[0]", @_[1 .. $#_]); Tambour::stop() };
    isa_ok $w, "Tambour::Child";
    is $w->pid, $pid, "its pid";
    run_until_stopped();
    is_deeply \@args, ["$w", $pid, 3 << 8], "told";
    is_deeply [$w->rpid, $w->rstatus], [$pid, 3 << 8], "and remembered";
    my $gone = Tambour::child $pid, 0, sub { @args = ("$_[0]", @_[1 .. $#_]); Tambour::stop() };
    run_until_stopped();
    is $args[2], -1, "a status that went elsewhere";

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
    my $heard = 0;
    my $any = Tambour::child 0, 0, sub {
        ++$heard;
        is delete $left{$_[1]}, $_[2] >> 8, "any child";
        Tambour::stop() if !%left;
    };
    my $other = Tambour::child 0, 0, sub { ++$heard };
    run_until_stopped();
    Tambour::run_ready();
    is $heard, 6, "two watch for any";
};

subtest "an ignored SIGCHLD" => sub {
    local $SIG{CHLD} = "IGNORE";
    my $pid = fork // die "fork: $!";
    if (!$pid) { select undef, undef, undef, 0.1; POSIX::_exit(5) }
    my $status;
    my $w = Tambour::child $pid, 0, sub { $status = $_[2]; Tambour::stop() };
    is $SIG{CHLD}, "DEFAULT", "is not ignored any more";
    run_until_stopped();
    is $status, 5 << 8, "so that there is a status";
};

subtest stat => sub {
    my $path = tempdir(CLEANUP => 1) . "/file";
    my $w = Tambour::stat $path, 0.1, sub { Tambour::stop() };
    isa_ok $w, "Tambour::Stat";
    is $w->path, $path, "its path";
    is_deeply [$w->attr], [], "not there";
    my $write = Tambour::timer 0, 0, sub { open my $file, ">", $path or die; print $file "12345" };
    run_until_stopped();
    is_deeply [$w->prev], [], "was not there";
    cmp_ok scalar(my @now = $w->attr), "==", 13, "as Perl's stat";
    Tambour::run_ready() while ($w->attr)[7] != 5;
    is_deeply [($w->attr)[0 .. 7]], [(CORE::stat $path)[0 .. 7]], "the same as that";
    unlink $path;
    run_until_stopped() while $w->attr;
    is_deeply [$w->attr], [], "gone";
};

subtest "hooks of a turn" => sub {
    my @order;
    my $timer = Tambour::timer 0, 0, sub { push @order, "timer" };
    my $prepare = Tambour::prepare sub { push @order, "prepare" };
    my $check = Tambour::check sub { push @order, "check" };
    isa_ok $prepare, "Tambour::Prepare";
    isa_ok $check, "Tambour::Check";
    Tambour::run_once();
    is_deeply \@order, [qw(prepare check timer)], "around the wait";
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
    is $first->priority, 2, "a priority";
    Tambour::run_ready();
    is_deeply \@order, [qw(first last)], "by priority";
};

subtest priority => sub {
    my @order;
    my @timers = map { my $p = $_; my $w = Tambour::timer 0, 0, sub { push @order, $p };
                       $w->priority($p); $w } 0, 2, -2, 1, -1;
    Tambour::run_once() while @order < 5;
    is_deeply \@order, [2, 1, 0, -1, -2], "in one turn, by priority";
};

subtest async => sub {
    my $calls = 0;
    my $w = Tambour::async sub { ++$calls; Tambour::stop() };
    isa_ok $w, "Tambour::Async";
    $w->send;
    $w->send;
    ok $w->sent, "sent";
    run_until_stopped();
    is $calls, 1, "once for all sends";
    is scalar(my @c = $w->signal_func), 2, "for other XS modules";
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
    is $? >> 8, 4, "told in the child, whose watchers work";
    Tambour::run_once() while !@seen;
    is_deeply \@seen, ["read"], "and not in the parent, which is untouched";
};

subtest cleanup => sub {
    my $out = qx($^X -Mblib=. -MTambour -e 'our \$w = Tambour::cleanup sub { print "bye" };' 2>&1);
    is $out, "bye", "when the program ends";

    # Written to a file: what a child buffers would come twice.
    my $file = tempdir(CLEANUP => 1) . "/said";
    my $runs = sub {
        open my $script, ">", "$file.pl" or die "open: $!";
        print $script 'use Tambour; open our $out, ">>", shift; $out->autoflush;',
            'sub say_it { print $out "@_ " }', @_;
        close $script;
        unlink $file;
        is system($^X, "-Mblib=.", "$file.pl", $file), 0, "ends well";
        open my $said, "<", $file or die "open: $!";
        local $/;
        <$said> // ""
    };
    is $runs->('our $w = Tambour::cleanup sub { say_it "bye" };',
               'our $i = Tambour::idle sub { say_it "idle" };',
               'our @t = map { Tambour::timer 0, 0, sub { say_it "timer"; exit 0 } } 1, 2;',
               'Tambour::run();'),
        "timer bye ", "and nothing else, whatever is due";
    is $runs->('our $t = Tambour::timer 0, 0, sub { say_it "timer" }; my $pid = fork;',
               'if (!$pid) { select undef, undef, undef, 0.02; exit 0 } waitpid $pid, 0; undef $t'),
        "", "nor in a child";
    is $runs->('our ($v, $w); $v = Tambour::cleanup sub { undef $w; say_it "first"; die "x" };',
               '$Tambour::DIED = sub { say_it "died" };',
               '$w = Tambour::cleanup sub { say_it "gone" };',
               'our $u = Tambour::cleanup sub { say_it "last" };'),
        "first died last ", "one may end another, or die";
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
    is_deeply \@seen, [Tambour::ERROR, Tambour::READ], "as if it had happened";
};

done_testing;
