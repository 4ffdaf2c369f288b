package AnyEvent::Impl::Tambour;

use AnyEvent (); BEGIN { AnyEvent::common_sense }
use Tambour ();

our $VERSION = $Tambour::VERSION;

*AE::time       = \&Tambour::time;
*AE::now        = \&Tambour::now;
*AE::now_update = \&Tambour::update_now;
*AE::io         = \&Tambour::_ae_io;
*AE::timer      = \&Tambour::_ae_timer;
*AE::signal     = \&Tambour::_ae_signal;
*AE::child      = \&Tambour::_ae_child;
*AE::idle       = \&Tambour::_ae_idle;

*time       = \&Tambour::time;
*now        = \&Tambour::now;
*now_update = \&Tambour::update_now;
*_poll      = \&Tambour::_ae_poll;

*AnyEvent::CondVar::Base::_wait = \&Tambour::_ae_wait;

sub io {
    my (undef, %arg) = @_;

    Tambour::_ae_io $arg{fh}, $arg{poll} eq "w", $arg{cb}
}

sub timer {
    my (undef, %arg) = @_;

    Tambour::_ae_timer $arg{after}, $arg{interval}, $arg{cb}
}

sub signal {
    my (undef, %arg) = @_;

    Tambour::_ae_signal $arg{signal}, $arg{cb}
}

sub child {
    my (undef, %arg) = @_;

    Tambour::_ae_child $arg{pid}, $arg{cb}
}

sub idle {
    my (undef, %arg) = @_;

    Tambour::_ae_idle $arg{cb}
}

1;

__END__

=encoding utf-8

=head1 NAME

AnyEvent::Impl::Tambour - AnyEvent backend for Tambour

=head1 SYNOPSIS

   PERL_ANYEVENT_MODEL=Tambour perl program.pl

   # or, in the program, before AnyEvent is first used
   use Tambour;
   use AnyEvent;

=head1 DESCRIPTION

Runs any program that uses AnyEvent on the event loop of L<Tambour>. AnyEvent loads this module
automatically if one of the two conditions above is met.

All watchers are implemented by Tambour: none is emulated, no descriptor is duplicated, and no
signal is delayed. The functions C<AE::io>, C<AE::timer>, C<AE::signal>, C<AE::child>,
C<AE::idle>, C<AE::time>, C<AE::now> and C<AE::now_update>, and the wait of C<recv>, are
implemented in C.

=head1 NOTES

=over 4

=item *

If a callback dies, C<$Tambour::DIED> prints a warning and the loop continues. If a handler of
C<%SIG> dies while C<recv> waits, the exception propagates out of C<recv>.

=item *

If C<recv> is called without active watchers, it waits until a signal arrives, without using CPU
time.

=item *

I/O watchers hold no reference to the file handle. Destroy them before you close the handle, as
AnyEvent requires.

=item *

A child watcher with a PID of 0 watches all children, including those that are also watched by
their PID. A child whose status was retrieved by other code is not reported. If C<$SIG{CHLD}> is
C<IGNORE>, it is set to C<DEFAULT> when a child watcher is started.

=item *

After a C<fork>, both parent and child can continue to use the loop.

=back

=head1 SEE ALSO

L<AnyEvent>, L<Tambour>

=cut
