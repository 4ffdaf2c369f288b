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

# So that programs which load this module get it from AnyEvent without being asked.
{
    no warnings "once";
    push @AnyEvent::REGISTRY, [Tambour => "AnyEvent::Impl::Tambour"];
}

END { _cleanup () }

1;


__END__

=encoding utf-8

=head1 NAME

Tambour - an event loop for Perl, on the C++ library of that name

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

A watcher says what a program waits for, and the code to call when that happens. It is a Perl
object: it watches from the moment it is made, and falls silent when the last reference to it is
gone, also inside its own callback. Callbacks are called one after another, by one of the
functions of L</RUNNING>.

Programs that are to run on other loops too use L<AnyEvent>, for which
L<AnyEvent::Impl::Tambour> is used where this module was loaded before, or where
C<PERL_ANYEVENT_MODEL> says so.

What the loop runs on (epoll, io_uring, poll, select) is chosen by the environment variable
C<TAMBOUR_BACKEND>.

=head1 WATCHERS

All functions here return a watcher that is started. They croak where that is not possible, with
the reason. Callbacks are code, or whatever has C<&{}> overloaded, and are called with the
watcher as their first argument. A callback that captures its own watcher keeps it, and itself,
alive; that is a way to have a watcher that lasts, until C<undef $watcher>.

=head2 $w = Tambour::io $handle, $events, $callback->($w, $got)

Watches a file handle, or a descriptor by its number, for C<Tambour::READ>, C<Tambour::WRITE>,
C<Tambour::URGENT> (out-of-band data) or C<Tambour::CLOSED> (the peer has shut down writing), or
several of them by C<|>. C<$got> is what came of that, with C<Tambour::ERROR> where an error is
pending. The callback is called again and again for as long as the descriptor is ready. Any
number may watch one descriptor.

The watcher does not hold the handle: destroy it before you close that. Regular files are always
ready.

C<< $w->fd >> is the descriptor; C<< $w->events >> is what is asked for, C<< $w->events
($events) >> changes it; C<< $w->set ($handle, $events) >> watches another handle.

=head2 $w = Tambour::timer $after, $interval, $callback->($w)

Calls C<$after> seconds after C<Tambour::now>, never before, and then every C<$interval>
seconds, where that is not 0. Expiries that a busy program missed are skipped. C<"inf"> means
never.

C<< $w->again >> starts anew with the time (for a repeating timer, the interval) that was last
given: an idle timeout that is pushed back on every event costs next to nothing. C<< $w->set
($after, $interval) >> gives other times; C<< $w->remaining >> is the number of seconds until it
expires, C<undef> while stopped.

=head2 $w = Tambour::wall $at, $interval, $callback->($w)

Calls at a time of the wall clock, in seconds since 1970, and goes by the new time where the
clock is set. With an interval it calls at C<$at> and every C<$interval> seconds before and
after that: 0 and 3600 mean every full hour, UTC. Of times that were missed, the last one
counts.

C<< $w->at >> is the next time, C<undef> while stopped; C<< $w->set ($at, $interval) >> gives
others.

=head2 $w = Tambour::signal $signal, $callback->($w, $number)

Calls after the process was sent the signal, by name (C<"INT">, C<"SIGINT">) or number. Any
number may watch one signal. The first of them replaces what C<%SIG> says, and the last one puts
that back. Signals that come several times before the callback has run are one. C<< $w->number
>>.

=head2 $w = Tambour::child $pid, $trace, $callback->($w, $pid, $status)

Calls when the child has ended, with its status as C<$?> has it; and with a true C<$trace>, also
when it was stopped, or goes on (see C<WIFSTOPPED> of L<POSIX>). It may have ended already. A
C<$status> of -1 says that the status went elsewhere: other code has waited for the child, or it
never was ours. A C<$pid> of 0 means any child of the process, whoever made it; one that others
watch by its pid too is told to all. Where C<$SIG{CHLD}> is C<IGNORE>, which would leave no status
to be told, it becomes C<DEFAULT> when a child is watched.

C<< $w->pid >> is what was asked for, C<< $w->rpid >> and C<< $w->rstatus >> what was told last.

=head2 $w = Tambour::stat $path, $interval, $callback->($w)

Calls when the path has come to be, is gone, names another file, or when what L<perlfunc/stat>
says of it has changed, but for the time of access. The kernel tells (inotify(7)); where it
cannot, the path is looked at every C<$interval> seconds (0: about 5). C<< $w->path >>; C<<
$w->attr >> and C<< $w->prev >> are what C<stat> returns, now and before: nothing where there is
no such file. C<< $w->look >> looks now, without calling.

=head2 $w = Tambour::idle $callback->($w)

Calls when nothing else is due, again and again: the loop does not sleep meanwhile.

=head2 $w = Tambour::prepare $callback->($w), Tambour::check $callback->($w)

Call before the loop waits, and after it has, before anything that has become due.

=head2 $w = Tambour::fork $callback->($w)

Calls in the child of a C<fork>, once the loop runs there; see L</FORK>.

=head2 $w = Tambour::cleanup $callback->($w)

Calls when the program ends (in an C<END> block), the loop still being there. Nothing else is
called then, whatever is due; a child of a C<fork> that ends by C<exit> calls it too. It does not
keep C<Tambour::run> going.

=head2 $w = Tambour::async $callback->($w)

Calls after C<< $w->send >>, from wherever: a handler of C<%SIG>, or another thread, by way of
C. Sends that have not been told yet are one; C<< $w->sent >> says whether there are such. C<<
($function, $argument) = $w->signal_func >> are the addresses of a C function C<void (void
*argument, int)> and of its argument, which other XS modules may call from any thread, for as
long as the watcher exists.

=head2 What all watchers have

C<< $w->start >>, C<< $w->stop >> and C<< $w->started >>. Callbacks that were due do not come
after C<stop>.

C<< $w->cb >> is the callback; C<< $w->cb ($other) >> replaces it, and returns the former.

C<< $w->priority >> is from -2 to 2, and 0 in the beginning; C<< $w->priority ($other) >>
changes it, and returns the former. Of what is due in one turn of the loop, a higher priority is
called first.

C<< $w->feed ($events) >> makes the watcher due as if what it waits for had happened (not for
children).

=head1 RUNNING

=over 4

=item Tambour::run ()

Runs until C<Tambour::stop>, or until nothing is left to wait for. May be called inside a
callback.

=item Tambour::run_once ()

Waits until something is due, calls what is, and returns; also where a handler of C<%SIG> was
run.

=item Tambour::run_ready ()

Calls what is due without waiting.

=item Tambour::stop ()

Makes the innermost C<run> return when the callbacks of this turn have been called; outside of
one, the next C<run> returns at once.

=item Tambour::time, Tambour::now, Tambour::update_now

The wall clock, in seconds since 1970: as it is, and as it was when this turn of the loop began,
which is what timers count from. C<update_now> reads the clock anew, for callbacks that have
taken long, and for programs that have not run the loop for long.

=item Tambour::suspend (), Tambour::resume ()

No time passes for timers between the two. The loop is not run meanwhile.

=item Tambour::feed_fd ($handle, $events), Tambour::feed_signal ($signal)

As if that had happened, for all its watchers. A C<feed_fd> reaches descriptors that the loop
has watched.

=item Tambour::due ()

How many callbacks are due.

=item Tambour::backend ()

C<"epoll">, C<"io_uring">, C<"poll"> or C<"select">.

=back

=head1 WHAT LEAVES A CALLBACK

Where a callback dies, C<$Tambour::DIED> is called with C<$@> set, and the loop goes on. It is
code that warns, unless a program puts its own there.

C<exit> in a callback ends the program as it does elsewhere. C<last> and C<next> find no loop of
the program's outside the callback to leave: they die.

=head1 PERL'S SIGNALS

A handler of C<%SIG> is run when the signal has interrupted the waiting of the loop, or by Perl
itself while a callback runs. What dies in it while the loop waits leaves C<run>, and C<recv> of
AnyEvent's condvars: C<alarm> works as a time limit for them. A signal that arrives in the few
instructions between the last look for one and the waiting is seen with the next event;
L</WATCHERS> for signals have no such gap.

=head1 FORK

In the child, the loop is made anew before it is run next, with all watchers as they were, also
those that the child did not want; the parent's is untouched. Children of the parent are not the
child's: their watchers are told that they are lost.

=head1 THREADS

A thread of Perl's has a loop of its own, made when it first uses one. Watchers stay in the
thread that made them; in a new thread, they are C<undef>.

=head1 SEE ALSO

L<AnyEvent::Impl::Tambour>, L<AnyEvent>, L<EV>

=cut
