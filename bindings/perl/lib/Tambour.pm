package Tambour;

use strict;
use warnings;

our $VERSION = '0.001';

our $DIED = sub { warn "Tambour: error in callback (ignoring): $@" };

require XSLoader;
XSLoader::load ("Tambour", $VERSION);

# Events of io watchers.
use constant { READ => 0x001, URGENT => 0x002, WRITE => 0x004, ERROR => 0x008, CLOSED => 0x2000 };

for my $kind (qw(IO Timer Wall Signal Child Stat Idle Fork Async Prepare Check Cleanup)) {
    no strict "refs";
    @{"Tambour::${kind}::ISA"} = "Tambour::Watcher";
}

sub Tambour::Watcher::CLONE_SKIP { 1 }

# Makes AnyEvent choose this module if it was loaded before AnyEvent's first use.
{
    no warnings "once";
    push @AnyEvent::REGISTRY, [Tambour => "AnyEvent::Impl::Tambour"];
}

END { _cleanup () }

1;


__END__

=encoding utf-8

=head1 NAME

Tambour - an event loop for Perl, based on the C++ library of the same name

=head1 SYNOPSIS

   use Tambour;

   my $input = Tambour::io \*STDIN, Tambour::READ, sub {
       my ($watcher, $events) = @_;
       defined (my $line = <STDIN>) or return Tambour::stop ();
       print "read: $line";
   };

   my $once  = Tambour::timer 2, 0, sub { print "two seconds\n" };
   my $often = Tambour::timer 1, 5, sub { print "after one second, and every five\n" };
   my $quit  = Tambour::signal INT => sub { Tambour::stop () };

   Tambour::run ();

   # Any program that uses AnyEvent:
   PERL_ANYEVENT_MODEL=Tambour perl program.pl

=head1 DESCRIPTION

A watcher is a Perl object that calls a callback when an event happens. It is active as soon as it
is created. It is destroyed when the last reference to it is released, which may happen inside its
own callback; its callback is not called afterwards. Callbacks are called one at a time, by the
functions in L</RUNNING>.

Programs that should also run on other event loops use L<AnyEvent>. AnyEvent uses
L<AnyEvent::Impl::Tambour> if this module was loaded first, or if C<PERL_ANYEVENT_MODEL> selects
it.

The environment variable C<TAMBOUR_BACKEND> selects the backend of the loop (epoll, io_uring,
poll, select).

=head1 WATCHERS

Each of the following functions returns a started watcher, or croaks with the reason if the watcher
cannot be started. A callback is a code reference or an object that overloads C<&{}>. Its first
argument is the watcher. A callback that refers to its own watcher keeps both alive; use this for a
watcher that should exist until C<undef $watcher>.

=head2 $w = Tambour::io $handle, $events, $callback->($w, $got)

Watches a file handle or descriptor number for C<Tambour::READ>, C<Tambour::WRITE>,
C<Tambour::URGENT> (out-of-band data), C<Tambour::CLOSED> (the peer has shut down its write side),
or several of them, combined with C<|>. C<$got> contains those that occurred, and C<Tambour::ERROR>
if an error is pending. Watchers are level-triggered: the callback is called repeatedly while the
descriptor is ready. Several watchers may watch the same descriptor.

The watcher holds no reference to the handle. Destroy the watcher before you close the handle.
Regular files are always ready.

C<< $w->fd >> returns the descriptor. C<< $w->events >> returns the requested events, and C<<
$w->events ($events) >> changes them. C<< $w->set ($handle, $events) >> watches another handle.

=head2 $w = Tambour::timer $after, $interval, $callback->($w)

Calls the callback C<$after> seconds after C<Tambour::now>, never earlier, and then every
C<$interval> seconds if C<$interval> is not 0. Expiries that a busy program misses are skipped.
C<"inf"> means never.

C<< $w->again >> restarts the timer with the last given delay or, for a repeating timer, its
interval. Restarting an idle timeout on every event is cheap. C<< $w->set ($after, $interval) >>
changes the times. C<< $w->remaining >> returns the number of seconds until the timer expires, or
C<undef> if it is stopped.

=head2 $w = Tambour::wall $at, $interval, $callback->($w)

Calls the callback at a wall-clock time, in seconds since 1970. If the clock is set, the timer
follows the new time. With an interval, the callback is called at C<$at> and at all multiples of
C<$interval> seconds before and after it: 0 and 3600 mean every full hour, UTC. If several times
were missed, the callback is called once, for the last one.

C<< $w->at >> returns the next time, or C<undef> if the timer is stopped. C<< $w->set ($at,
$interval) >> changes the times.

=head2 $w = Tambour::signal $signal, $callback->($w, $number)

Calls the callback after the process received the signal, given by name (C<"INT">, C<"SIGINT">) or
number. Several watchers may watch the same signal. The first one replaces the handler of C<%SIG>,
and the last one restores it. Signals that arrive several times before the callback is called are
reported once. C<< $w->number >> returns the number of the signal.

=head2 $w = Tambour::child $pid, $trace, $callback->($w, $pid, $status)

Calls the callback when the child process has ended, with its status as in C<$?>. If C<$trace> is
true, also calls it when the child is stopped or continued (see C<WIFSTOPPED> in L<POSIX>). The
child may have ended before the watcher was created. A C<$status> of -1 means that the status is
not available, because other code waited for the child or it is not a child of this process.

A C<$pid> of 0 means any child of the process. The exit of a child that is also watched by its PID
is reported to all of these watchers. If C<$SIG{CHLD}> is C<IGNORE>, the kernel would discard the
status, so C<$SIG{CHLD}> is set to C<DEFAULT> when a child watcher is started.

C<< $w->pid >> returns the requested PID. C<< $w->rpid >> and C<< $w->rstatus >> return the last
reported PID and status.

=head2 $w = Tambour::stat $path, $interval, $callback->($w)

Calls the callback when the path is created, is removed, refers to another file, or when a value
of L<perlfunc/stat> other than the access time has changed. Changes are detected with inotify(7).
Where inotify cannot detect them, the path is polled every C<$interval> seconds (0: about 5).

C<< $w->path >> returns the path. C<< $w->attr >> and C<< $w->prev >> return the current and
previous values of C<stat>, or an empty list if the file does not exist. C<< $w->update >> updates
them now, without calling the callback.

=head2 $w = Tambour::idle $callback->($w)

Calls the callback repeatedly while no other callback is due. The loop does not wait meanwhile.

=head2 $w = Tambour::prepare $callback->($w), Tambour::check $callback->($w)

Call the callback before the loop waits, and after it has waited, before all callbacks that have
become due.

=head2 $w = Tambour::fork $callback->($w)

Calls the callback in the child of a C<fork>, when the loop first runs there; see L</FORK>.

=head2 $w = Tambour::cleanup $callback->($w)

Calls the callback when the program ends (in an C<END> block), while the loop still exists. No
other callbacks are called at that point, even if they are due. A child of a C<fork> that ends by
C<exit> also calls it. A cleanup watcher does not keep C<Tambour::run> running.

=head2 $w = Tambour::async $callback->($w)

Calls the callback after C<< $w->send >>, which may be called anywhere, including in a handler of
C<%SIG>, and, through C, on another thread. Several sends before the callback is called are
reported once. C<< $w->sent >> returns whether a send is pending. C<< ($function, $argument) =
$w->signal_func >> returns the addresses of a C function C<void (void *argument, int)> and of its
argument. Other XS modules may call the function from any thread while the watcher exists.

=head2 Methods of all watchers

C<< $w->start >>, C<< $w->stop >> and C<< $w->started >>. After C<stop>, due callbacks are not
called.

C<< $w->cb >> returns the callback; C<< $w->cb ($other) >> replaces it and returns the previous
one.

C<< $w->priority >> returns the priority, from -2 to 2, initially 0; C<< $w->priority ($other) >>
changes it and returns the previous one. Of the callbacks that are due in one iteration of the
loop, those with a higher priority are called first.

C<< $w->feed ($events) >> marks the watcher as due, as if its event had happened (not for child
watchers).

=head1 RUNNING

=over 4

=item Tambour::run ()

Runs until C<Tambour::stop> is called or no active watcher is left. May be called inside a
callback.

=item Tambour::run_once ()

Waits until callbacks are due, calls them, and returns. Also returns after a handler of C<%SIG> was
called.

=item Tambour::run_ready ()

Calls the due callbacks without waiting.

=item Tambour::stop ()

Makes the innermost C<run> return after the callbacks of the current iteration. Outside of C<run>,
makes the next C<run> return immediately.

=item Tambour::time, Tambour::now, Tambour::update_now

C<time> returns the wall-clock time, in seconds since 1970. C<now> returns the wall-clock time at
the start of the current iteration, to which timers are relative. C<update_now> updates it; use it
in callbacks that have taken long, and after the loop has not run for a long time.

=item Tambour::suspend (), Tambour::resume ()

Between the two calls, no time passes for timers. The loop must not run meanwhile.

=item Tambour::feed_fd ($handle, $events), Tambour::feed_signal ($signal)

Mark all watchers of the descriptor or signal as due, as if the event had happened. C<feed_fd>
applies to descriptors that the loop has watched.

=item Tambour::due ()

Returns the number of due callbacks.

=item Tambour::backend ()

Returns C<"epoll">, C<"io_uring">, C<"poll"> or C<"select">.

=back

=head1 EXCEPTIONS IN CALLBACKS

If a callback dies, C<$Tambour::DIED> is called with C<$@> set, and the loop continues. The default
prints a warning; a program may assign its own code reference.

C<exit> in a callback ends the program. C<last> and C<next> in a callback cannot leave a loop
outside the callback; they die.

=head1 PERL SIGNAL HANDLERS

A handler of C<%SIG> is called when its signal has interrupted the wait of the loop, or by Perl
itself while a callback runs. An exception in a handler during the wait propagates out of C<run>,
and out of C<recv> of AnyEvent's condvars; therefore C<alarm> works as a timeout. A signal that
arrives in the few instructions between the last check and the wait is handled with the next
event. Signal watchers (L</WATCHERS>) do not have this gap.

=head1 FORK

In the child, the loop is reopened before it runs again, with all watchers of the parent, including
those that the child does not need. The loop of the parent is not affected. Children of the parent
are not children of the child: their watchers are called with a lost status.

=head1 THREADS

Each Perl thread has its own loop, created on first use. Watchers belong to the thread that
created them; in a new thread, they are C<undef>.

=head1 SEE ALSO

L<AnyEvent::Impl::Tambour>, L<AnyEvent>, L<EV>

=cut
