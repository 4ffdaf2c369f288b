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

AnyEvent::Impl::Tambour - AnyEvent on Tambour

=head1 SYNOPSIS

   PERL_ANYEVENT_MODEL=Tambour perl program.pl

   # or, in the program, before AnyEvent is first used
   use Tambour;
   use AnyEvent;

=head1 DESCRIPTION

Lets every program that uses AnyEvent run on the loop of L<Tambour>. Nothing has to be loaded
but one of the two above; AnyEvent does the rest.

All watchers are Tambour's own: nothing is emulated, no descriptor duplicated, no signal
delayed. The functions C<AE::io>, C<AE::timer>, C<AE::signal>, C<AE::child>, C<AE::idle>,
C<AE::time>, C<AE::now> and C<AE::now_update> are functions of C, and so is the waiting of
C<recv>.

=head1 WHAT TO KNOW

=over 4

=item *

A callback that dies warns, by C<$Tambour::DIED>, and the loop goes on. A handler of C<%SIG>
that dies while C<recv> waits leaves C<recv>.

=item *

C<recv> with nothing left to wait for sleeps until a signal comes, and burns no processor.

=item *

I/O watchers do not hold the file handle. Destroy them before you close it, as AnyEvent demands.

=item *

Child watchers with a pid of 0 watch for all children, also for those that are watched by their
pid. A child whose status went elsewhere is not told of. Where C<$SIG{CHLD}> is C<IGNORE>, it
becomes C<DEFAULT> when a child is watched.

=item *

After a C<fork>, parent and child can both go on.

=back

=head1 SEE ALSO

L<AnyEvent>, L<Tambour>

=cut
