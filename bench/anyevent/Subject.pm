# What the programs have in common: on which model they run, and the line that they end with.
package Subject;

use strict;
use warnings;

use AnyEvent;
use JSON::PP;
use POSIX ();

my %modules = (Perl => "AnyEvent", POE => "POE", IOAsync => "IO::Async::Loop");

# AnyEvent takes another model where the one asked for cannot be loaded, and says so at best; its
# figures under that one's name would be a lie.
sub check {
    my $asked = "AnyEvent::Impl::" . ($ENV{PERL_ANYEVENT_MODEL} // "");
    my $model = AnyEvent::detect();
    die "asked for $asked, got $model\n" if $model ne $asked;
}

sub tell {
    my @iterations = @_;
    my $name = $ENV{PERL_ANYEVENT_MODEL};
    my $module = $modules{$name} // $name;
    no strict "refs";
    print encode_json({
        subject => lc $name, version => ${"${module}::VERSION"} . "", backend => backend(),
        iterations => \@iterations,
    }), "\n";
    STDOUT->flush;
    # Without taking down ten thousand watchers, for which some models need minutes.
    POSIX::_exit(0);
}

sub backend {
    return Tambour::backend() if defined &Tambour::backend;
    no warnings "once";
    my ($loop) = ref($AnyEvent::Impl::IOAsync::LOOP) =~ /(\w+)$/;
    return lc($loop // "");
}

1
