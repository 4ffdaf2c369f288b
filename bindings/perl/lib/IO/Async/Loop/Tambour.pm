package IO::Async::Loop::Tambour;

use strict;
use warnings;

use parent "IO::Async::Loop";

use Carp qw(croak);
use Scalar::Util qw(weaken);

use Tambour ();

our $VERSION = $Tambour::VERSION;

use constant API_VERSION => "0.76";

# The objects of this process, whose watchers a child process does not need.
my %loops;
my $process = $$;

sub new {
    my ($class, %arg) = @_;

    my $self = $class->__new (%arg);
    $self->{tambour} = { read => {}, write => {}, signal => {}, process => {}, timer => {} };
    if ($process != $$) {
        # IO::Async makes a new object in the child after a fork. The loop still has the watchers of
        # the parent.
        %$_ = () for map { values %{ $_->{tambour} } } grep { $_ } values %loops;
        %loops   = ();
        $process = $$;
    }
    weaken ($loops{ 0 + $self } = $self);

    $self
}

sub DESTROY {
    my ($self) = @_;

    delete $loops{ 0 + $self };
    # Timers refer to their table.
    %$_ = () for values %{ $self->{tambour} };
    $self->SUPER::DESTROY;
}

sub is_running { $_[0]{running} }

# Callbacks count themselves, and pass exceptions to loop_once.
sub _callback {
    my ($self, $code) = @_;

    weaken $self;
    sub { $self->{count}++ if $self; $code->(@_) }
}

sub loop_once {
    my ($self, $timeout) = @_;

    $timeout = 0 if @{ $self->{deferrals} };

    my ($died, $has_died);
    local $Tambour::DIED = sub { $has_died++ or $died = $@ };
    $self->{count} = 0;
    $self->pre_wait;
    if (defined $timeout && $timeout <= 0) {
        Tambour::run_ready;
    } else {
        Tambour::update_now;
        my $limit = Tambour::timer $timeout // "inf", 0, sub { };
        Tambour::run_once;
    }
    $self->post_wait;
    die $died if $has_died;

    $self->{count} + $self->_manage_queues
}

sub watch_io {
    my ($self, %arg) = @_;

    $self->__watch_io (%arg);
    my $fd       = $arg{handle}->fileno;
    my $watchers = $self->{tambour};
    $watchers->{read}{$fd} = Tambour::io $fd, Tambour::READ, $self->_callback ($arg{on_read_ready})
        if $arg{on_read_ready};
    $watchers->{write}{$fd} = Tambour::io $fd, Tambour::WRITE, $self->_callback ($arg{on_write_ready})
        if $arg{on_write_ready};
}

sub unwatch_io {
    my ($self, %arg) = @_;

    $self->__unwatch_io (%arg);
    my $fd       = $arg{handle}->fileno;
    my $watchers = $self->{tambour};
    delete $watchers->{read}{$fd}  if $arg{on_read_ready};
    delete $watchers->{write}{$fd} if $arg{on_write_ready};
}

sub watch_time {
    my ($self, %arg) = @_;

    my $code = $arg{code} or croak "Expected 'code' as CODE ref";
    my $after;
    if (exists $arg{after}) {
        $after = $arg{after};
        $after -= Tambour::time () - $arg{now} if exists $arg{now};
    } elsif (exists $arg{at}) {
        $after = $arg{at} - Tambour::time ();
    } else {
        croak "Expected one of 'at' or 'after'";
    }

    my $timers   = $self->{tambour}{timer};
    my $id       = ++$self->{last_timer};
    my $callback = $self->_callback ($code);
    Tambour::update_now;
    $timers->{$id} = Tambour::timer $after, 0, sub {
        delete $timers->{$id};
        $callback->()
    };

    $id
}

sub unwatch_time {
    my ($self, $id) = @_;

    delete $self->{tambour}{timer}{$id};
}

sub watch_signal {
    my ($self, $signal, $code) = @_;

    exists $SIG{$signal} or croak "Unrecognised signal name $signal";
    $self->{tambour}{signal}{$signal} = Tambour::signal $signal, $self->_callback (sub { $code->() });
}

sub unwatch_signal {
    my ($self, $signal) = @_;

    delete $self->{tambour}{signal}{$signal};
}

sub watch_process {
    my ($self, $pid, $code) = @_;

    my $watchers = $self->{tambour}{process};
    exists $watchers->{$pid} and croak "Already have a handler for $pid";
    my $callback = $self->_callback ($code);
    $watchers->{$pid} = Tambour::child $pid, 0, sub {
        my (undef, $ended, $status) = @_;

        delete $watchers->{$pid} if $pid;
        $callback->($ended, $status)
    };
}

sub unwatch_process {
    my ($self, $pid) = @_;

    delete $self->{tambour}{process}{$pid};
}

1;

__END__

=encoding utf-8

=head1 NAME

IO::Async::Loop::Tambour - IO::Async on Tambour

=head1 SYNOPSIS

   IO_ASYNC_LOOP=Tambour perl program.pl

   # or, in the program
   use IO::Async::Loop::Tambour;

   my $loop = IO::Async::Loop::Tambour->new;

=head1 DESCRIPTION

Runs programs that use L<IO::Async> on the event loop of L<Tambour>. Descriptors, timers, signals
and processes are watched by Tambour.

=head1 NOTES

=over 4

=item *

Tambour has one loop for each interpreter: all objects of this class share it, together with
programs' own watchers of L<Tambour>, L<AnyEvent> and L<Mojo::Reactor::Tambour>. C<loop_once> of one
object also calls the callbacks of the others.

=item *

An exception of a callback propagates out of C<loop_once>, after the other callbacks that were due
have been called.

=item *

C<on_hangup> of C<watch_io> is not supported. Processes are watched by their PID, or all of them
with 0; a process whose status was retrieved by other code is reported with a status of -1.

=item *

After a C<fork>, both parent and child can continue to use the loop. If the child makes a new object,
as C<< $loop->fork >> of IO::Async requires, the watchers of the parent's objects are destroyed in
the child.

=back

=head1 SEE ALSO

L<IO::Async>, L<Tambour>

=cut
