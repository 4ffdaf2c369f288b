# Exercises the behaviour that AnyEvent documents and prints a trace, which must be the same on every
# conforming model. Run by anyevent.t on Tambour, and by same_as_ev.t on Tambour and EV.
use strict;
use warnings;

use AnyEvent;
use AnyEvent::Handle;
use AnyEvent::Socket;
use AnyEvent::Util ();
use POSIX ();
use Scalar::Util qw(weaken);
use Socket;

$| = 1;
$SIG{__WARN__} = sub { print "warned: ", $_[0] =~ s/.*\(ignoring\): //r };
my $limit = AE::timer 60, 0, sub { print "walk.pl: timeout\n"; POSIX::_exit(1) };

sub say_it { print join(" ", @_), "\n" }
sub section { print "== @_\n" }

sub pair {
    socketpair my $one, my $other, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die "socketpair: $!";
    AnyEvent::fh_unblock $_ for $one, $other;
    return ($one, $other);
}

# Runs the loop until all immediate events have been delivered.
sub settle {
    my $done = AE::cv;
    my $timer = AE::timer $_[0] // 0.02, 0, sub { $done->send };
    $done->recv;
}

print "model ", AnyEvent::detect(), "\n";

section "io";
{
    my ($one, $other) = pair();
    my @seen;
    my $done = AE::cv;
    my $reader = AnyEvent->io(fh => $one, poll => "r", cb => sub {
        sysread $one, my $bytes, 99;
        push @seen, $bytes;
        $done->send;
    });
    my $writer; $writer = AnyEvent->io(fh => $other, poll => "w", cb => sub {
        undef $writer;
        syswrite $other, "by method";
    });
    $done->recv;
    say_it "read", @seen;

    undef $reader;
    syswrite $other, "unseen";
    settle();
    say_it "calls after destruction:", scalar @seen;
    sysread $one, my $rest, 99;

    $done = AE::cv;
    my $by_number = AE::io fileno $one, 0, sub {
        sysread $one, my $bytes, 99;
        say_it "by number", $bytes;
        $done->send;
    };
    syswrite $other, "seven";
    $done->recv;
    undef $by_number;

    # Level-triggered: unread data is reported again.
    my $times = 0;
    $done = AE::cv;
    my $level = AE::io $one, 0, sub { $done->send if ++$times == 3 };
    syswrite $other, "x";
    $done->recv;
    say_it "level-triggered: reported", $times;
    undef $level;

    # Several watchers on one descriptor, in both directions.
    my %called;
    $done = AE::cv;
    my @many = map { my $n = $_; AE::io $one, $n % 2, sub {
        $done->end if !$called{$n}++;
    } } 1 .. 6;
    $done->begin for @many;
    $done->recv;
    say_it "watchers of one descriptor:", join ",", sort keys %called;
    @many = ();

    # A callback destroys another watcher that is due in the same iteration.
    my ($third, $fourth) = pair();
    syswrite $fourth, "y";
    my @both;
    my $calls = 0;
    @both = map { my $me = $_; AE::io $_->[0], 0, sub { ++$calls; @both = () } } [$one], [$third];
    settle();
    say_it "destroyed by another callback:", $calls;
}

section "io: end of file, and a reused descriptor number";
{
    my ($one, $other) = pair();
    close $other;
    my $done = AE::cv;
    my $watcher = AE::io $one, 0, sub { $done->send(sysread $one, my $bytes, 9) };
    say_it "end of file:", $done->recv;
    my $number = fileno $one;
    undef $watcher;
    close $one;
    my ($again, $peer) = pair();
    say_it "same descriptor number:", $number == fileno $again ? "yes" : "no";
    $done = AE::cv;
    $watcher = AE::io $again, 0, sub { sysread $again, my $bytes, 9; $done->send($bytes) };
    syswrite $peer, "new file";
    say_it $done->recv;
}

section "timer";
{
    my @order;
    my $done = AE::cv;
    # The time to which timers are relative; may lie in the past.
    my $before = AnyEvent->now;
    my @timers = (
        (map { my $after = $_; AE::timer $after / 50, 0, sub { push @order, $after } } 3, 1, 2),
        AnyEvent->timer(after => 0.1, cb => sub { $done->send }),
    );
    $done->recv;
    say_it "in order", @order;
    say_it "not early:", AnyEvent->time - $before >= 0.0999 ? "yes" : "no";

    my $times = 0;
    $done = AE::cv;
    my $repeating = AnyEvent->timer(after => 0.01, interval => 0.01, cb => sub {
        $done->send if ++$times == 4;
    });
    $done->recv;
    undef $repeating;
    settle 0.05;
    say_it "repeated", $times;

    $times = 0;
    my $once = AnyEvent->timer(after => 0, interval => 0, cb => sub { ++$times });
    my $undefined = AnyEvent->timer(after => 0, interval => undef, cb => sub { ++$times });
    my $past = AE::timer -5, 0, sub { ++$times };
    settle 0.05;
    say_it "one-shot:", $times;

    my $own; $own = AE::timer 0, 0, sub { undef $own; say_it "watcher destroyed in its callback" };
    settle();
    my $held = AE::timer 0, 0, sub { say_it "unexpected" };
    undef $held;
    settle();
}

section "time";
{
    my ($first, $at, $last) = (time, AnyEvent->time, time);
    say_it "time equals CORE::time:", $at > $first - 2 && $at < $last + 2 ? "yes" : "no";
    AnyEvent->now_update;
    my $now = AnyEvent->now;
    select undef, undef, undef, 0.05;
    say_it "now is constant between updates:", AE::now == $now ? "yes" : "no";
    my $before = AE::time;
    AE::now_update;
    my $after = AE::time;
    say_it "now_update changes now:", AE::now > $now + 0.04 ? "yes" : "no";
    say_it "now is close to time:",
        AE::now > $before - 0.02 && AE::now < $after + 0.02 ? "yes" : "no";
}

section "signal";
{
    my @seen;
    my $done = AE::cv;
    my $one = AnyEvent->signal(signal => "USR1", cb => sub { push @seen, "one" });
    my $two = AE::signal USR1 => sub { push @seen, "two"; $done->send };
    kill USR1 => $$;
    $done->recv;
    settle();
    say_it sort @seen;
    undef $one;
    @seen = ();
    $done = AE::cv;
    my $inside = 0;
    my $timer = AE::timer 0, 0, sub {
        kill USR1 => $$;
        select undef, undef, undef, 0.01;
        $inside = @seen;
    };
    $done->recv;
    say_it "nested in another callback:", $inside, "called after it:", @seen;
}

section "child";
{
    my $done = AE::cv;
    my $child = sub {
        my $pid = fork // die "fork: $!";
        POSIX::_exit($_[0]) if !$pid;
        return $pid;
    };
    my %pid = map { $child->($_) => $_ } 3, 4, 5;
    my @watchers = map { my $pid = $_; $done->begin; AnyEvent->child(pid => $pid, cb => sub {
        my ($reported, $status) = @_;
        say_it "reported for another child" if $reported != $pid;
        $pid{$pid} = "$pid{$pid}: " . ($status >> 8);
        $done->end;
    }) } keys %pid;
    $done->recv;
    say_it "exited with", sort values %pid;

    my $pid = fork // die "fork: $!";
    if (!$pid) { sleep 50; POSIX::_exit(0) }
    $done = AE::cv;
    my @same = map {
        $done->begin;
        AE::child $pid, sub { say_it "killed by", $_[1] & 127; $done->end }
    } 1, 2;
    kill KILL => $pid;
    $done->recv;

    # The child is a zombie before a watcher is created.
    $done = AE::cv;
    $pid = $child->(7);
    select undef, undef, undef, 0.1;
    my $late = AE::child $pid, sub { $done->send($_[1] >> 8) };
    say_it "late", $done->recv;

    $done = AE::cv;
    my $any = AE::child 0, sub { $done->send($_[1] >> 8) };
    $child->(9);
    say_it "any child", $done->recv;
    undef $any;

    # A child with watchers of its own is reported to every watcher once.
    my @reported;
    my $all = AE::child 0, sub { push @reported, "any"; $done->end };
    $pid = $child->(10);
    $done = AE::cv;
    $done->begin for 1 .. 3;
    my @own = map { AE::child $pid, sub { push @reported, "own"; $done->end } } 1, 2;
    $done->recv;
    my $more = AE::cv;
    my $pause = AE::timer 0.05, 0, $more;
    $more->recv;
    say_it "watchers called:", sort @reported;
}

section "idle";
{
    my ($times, $done) = (0, AE::cv);
    my $idle = AnyEvent->idle(cb => sub { $done->send if ++$times == 3 });
    $done->recv;
    undef $idle;
    my $after = $times;
    settle();
    say_it "idle", $after, $times;
}

section "condvar";
{
    my $cv = AnyEvent->condvar;
    say_it "ready:", $cv->ready ? 1 : 0;
    $cv->send(1, 2, 3);
    say_it "list", $cv->recv;
    say_it "scalar", scalar $cv->recv;
    say_it "ready:", $cv->ready ? 1 : 0;

    $cv = AE::cv;
    my $timer = AE::timer 0, 0, sub { $cv->croak("it failed") };
    eval { $cv->recv };
    say_it "croaked:", $@ =~ /^(it failed)/;

    $cv = AE::cv { say_it "called with", ref $_[0], $_[0]->recv };
    $cv->(5);
    $cv = AE::cv;
    $cv->cb(sub { say_it "set callback", $_[0]->recv });
    $cv->send(6);

    $cv = AE::cv;
    my @timers;
    $cv->begin(sub { $_[0]->send("all") });
    for my $n (1 .. 3) {
        $cv->begin;
        push @timers, AE::timer $n / 100, 0, sub { $cv->end };
    }
    $cv->end;
    say_it $cv->recv;

    # A condvar used as a callback.
    $cv = AE::cv;
    $timer = AE::timer 0.01, 0, $cv;
    $cv->recv;
    say_it "a condvar is a callback";

    $cv = AE::cv;
    my $inner = AE::timer 0, 0, sub {
        eval { AE::cv->recv };
        $cv->send($@ =~ /(recursive blocking wait)/);
    };
    say_it $cv->recv;
}

section "postpone";
{
    my @order;
    AnyEvent::postpone { push @order, "postponed" };
    push @order, "first";
    settle();
    say_it @order;
}

section "exceptions and exit in callbacks, \$\@";
{
    my $done = AE::cv;
    my @timers = (
        AE::timer(0, 0, sub { die "oops\n" }),
        AE::timer(0.01, 0, sub { eval { die "caught\n" }; print "eval in a callback: $@" }),
        AE::timer(0.02, 0, sub { $done->send }),
    );
    $done->recv;

    local $SIG{ALRM} = sub { die "alarm\n" };
    eval { alarm 1; AE::cv->recv };
    print "out of recv: $@";

    my $pid = fork // die "fork: $!";
    if (!$pid) {
        my $timer = AE::timer 0, 0, sub { exit 3 };
        AE::cv->recv;
        POSIX::_exit(1);
    }
    waitpid $pid, 0;
    say_it "exit in a callback:", $? >> 8;
}

section "lifetime";
{
    my $freed = 0;
    my $make = sub {
        my $guard = AnyEvent::Util::guard { ++$freed };
        return sub { $guard };
    };
    my ($one, $other) = pair();
    for my $watcher (AE::io($one, 0, $make->()), AE::timer(9, 0, $make->()),
                     AE::timer(9, 9, $make->()), AE::signal(USR2 => $make->()),
                     AE::idle($make->())) {
        weaken(my $weak = $watcher);
    }
    settle();
    say_it "closures freed:", $freed;
}

section "fork";
{
    my ($one, $other) = pair();
    my $done = AE::cv;
    my $watcher = AE::io $one, 0, sub { sysread $one, my $bytes, 9; $done->send($bytes) };
    settle();
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        my $timer = AE::timer 0.01, 0, sub { syswrite $other, "in child" };
        my $got = $done->recv;
        POSIX::_exit($got eq "in child" ? 6 : 1);
    }
    waitpid $pid, 0;
    say_it "loop in the child:", $? >> 8;
    syswrite $other, "parent";
    say_it "loop in the parent:", $done->recv;
}

section "modules";
{
    my $done = AE::cv;
    my $server = tcp_server "127.0.0.1", undef, sub {
        my ($fh) = @_;
        my $handle; $handle = AnyEvent::Handle->new(
            fh => $fh,
            on_error => sub { $handle->destroy },
            on_eof => sub { $handle->destroy },
            on_read => sub {
                shift->push_read(line => sub { $_[0]->push_write(uc($_[1]) . "\n") });
            });
    }, sub { $done->send($_[2]); 0 };
    my $port = $done->recv;
    $done = AE::cv;
    tcp_connect "127.0.0.1", $port, sub {
        my ($fh) = @_ or return $done->croak("no connection: $!");
        my $handle; $handle = AnyEvent::Handle->new(
            fh => $fh, timeout => 60,
            on_error => sub { $done->croak($_[2]) });
        $handle->push_write("hello\n");
        $handle->push_read(line => sub { $done->send($_[1]); $handle->destroy });
    };
    say_it "Handle and Socket:", $done->recv;

    $done = AnyEvent::Util::run_cmd ["sh", "-c", "cat; exit 2"], "<" => \"piped", ">" => \my $out;
    say_it "run_cmd:", $done->recv >> 8, $out;

    $done = AE::cv;
    AnyEvent::Util::fork_call { return "forked", 1 + 1 } sub { $done->send(@_) };
    say_it "fork_call:", $done->recv;

    my ($one, $other) = pair();
    $done = AE::cv;
    my $handle; $handle = AnyEvent::Handle->new(
        fh => $one, timeout => 0.05,
        on_error => sub { $done->send("error"); $handle->destroy },
        on_timeout => sub { $done->send("timeout"); $handle->destroy });
    say_it "idle timeout:", $done->recv;
}

section "end";
