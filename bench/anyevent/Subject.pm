# Shared by the programs: checks the AnyEvent model, and prints the line of JSON.
package Subject;

use strict;
use warnings;

use AnyEvent;
use JSON::PP;
use POSIX ();

my %modules = (Perl => "AnyEvent", POE => "POE", IOAsync => "IO::Async::Loop");

# If AnyEvent cannot load the requested model, it uses another one. Figures must not be reported under
# the wrong name.
sub check {
    my $requested = "AnyEvent::Impl::" . ($ENV{PERL_ANYEVENT_MODEL} // "");
    my $model = AnyEvent::detect();
    die "requested $requested, got $model\n" if $model ne $requested;
}

sub report {
    my @iterations = @_;
    my $name = $ENV{PERL_ANYEVENT_MODEL};
    my $module = $modules{$name} // $name;
    no strict "refs";
    print encode_json({
        subject => lc $name, version => ${"${module}::VERSION"} . "", backend => backend(),
        iterations => \@iterations,
    }), "\n";
    STDOUT->flush;
    # Skips destruction of ten thousand watchers, which takes minutes with some models.
    POSIX::_exit(0);
}

sub backend {
    return Tambour::backend() if defined &Tambour::backend;
    no warnings "once";
    my ($loop) = ref($AnyEvent::Impl::IOAsync::LOOP) =~ /(\w+)$/;
    return lc($loop // "");
}

1
