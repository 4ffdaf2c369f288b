package Mojo::Reactor::Tambour;

use Mojo::Base "Mojo::Reactor::Poll";

use Carp qw(croak);
use Scalar::Util qw(weaken);

use Tambour ();

our $VERSION = $Tambour::VERSION;

# The loop belongs to one object; others fall back to Mojo::Reactor::Poll, as with Mojo::Reactor::EV.
my $is_taken;

sub new { $is_taken++ ? Mojo::Reactor::Poll->new : shift->SUPER::new }

sub DESTROY { undef $is_taken }

sub again {
    my ($self, $id, $after) = @_;

    croak "Timer not active" unless my $timer = $self->{timers}{$id};
    $timer->{after} = $after if defined $after;
    Tambour::update_now;
    my $watcher = $timer->{watcher};
    $watcher->set ($timer->{after}, $timer->{recurring} ? $timer->{after} : 0);
    $watcher->start;
}

sub one_tick { shift->_run (\&Tambour::run_once) }

sub recurring { shift->_timer (1, @_) }

sub start { shift->_run (\&Tambour::run) }

# Ends all runs that are in progress.
sub stop {
    my ($self) = @_;

    return unless $self->{running};
    $self->{is_stopped} = 1;
    Tambour::stop;
}

sub timer { shift->_timer (0, @_) }

sub watch {
    my ($self, $handle, $read, $write) = @_;

    my $fd = fileno $handle;
    croak "I/O watcher not active" unless my $io = $self->{io}{$fd};

    my $events = ($read ? Tambour::READ : 0) | ($write ? Tambour::WRITE : 0);
    if (!$events) {
        delete $io->{watcher};
    } elsif (my $watcher = $io->{watcher}) {
        $watcher->events ($events);
    } else {
        weaken (my $reactor = $self);
        $io->{watcher} = Tambour::io $fd, $events, sub {
            my (undef, $got) = @_;

            $reactor->_try ("I/O watcher", $reactor->{io}{$fd}{cb}, 0) if $got & Tambour::READ;
            $reactor->_try ("I/O watcher", $reactor->{io}{$fd}{cb}, 1)
                if $got & Tambour::WRITE && $reactor->{io}{$fd};
        };
    }

    $self
}

sub _run {
    my ($self, $run) = @_;

    {
        local $self->{running} = 1;
        $run->();
    }
    return unless $self->{is_stopped};
    $self->{running} ? Tambour::stop : delete $self->{is_stopped};
}

sub _timer {
    my ($self, $recurring, $after, $cb) = @_;

    $after ||= 0.0001 if $recurring;
    my $id = $self->_id;
    weaken (my $reactor = $self);
    Tambour::update_now if $after > 0;
    $self->{timers}{$id} = {
        after     => $after,
        recurring => $recurring,
        watcher   => Tambour::timer ($after, $recurring ? $after : 0, sub {
            delete $reactor->{timers}{$id} unless $recurring;
            $reactor->_try ("Timer", $cb);
        }),
    };

    $id
}

1;

__END__

=encoding utf-8

=head1 NAME

Mojo::Reactor::Tambour - Mojolicious on Tambour

=head1 SYNOPSIS

   MOJO_REACTOR=Mojo::Reactor::Tambour perl application.pl daemon

=head1 DESCRIPTION

Runs programs that use L<Mojo::IOLoop>, such as applications of L<Mojolicious>, on the event loop of
L<Tambour>.

=head1 NOTES

=over 4

=item *

Tambour has one loop for each interpreter, which the first reactor uses, together with programs' own
watchers of L<Tambour>, L<AnyEvent> and L<IO::Async::Loop::Tambour>. Further reactors are
L<Mojo::Reactor::Poll> objects, as with L<Mojo::Reactor::EV>.

=item *

An exception of a callback is emitted as the event C<error> of the reactor.

=item *

After a C<fork>, both parent and child can continue to use the reactor. C<reset> removes the
parent's watchers in the child.

=back

=head1 SEE ALSO

L<Mojo::Reactor>, L<Mojo::IOLoop>, L<Tambour>

=cut
