# The tests of Mojo::Reactor::EV in the source package of Mojolicious, on Tambour. "tools/bootstrap
# conformance" downloads them.
use strict;
use warnings;

use File::Temp;
use Test::More;

my $suite = "/usr/local/share/tambour-tests/Mojolicious/t/mojo/reactor_ev.t";
plan skip_all => "Mojolicious is not installed" if !eval "require Mojo::Reactor; 1";
open my $source, "<", $suite or plan skip_all => "$suite was not downloaded";
my $text = do { local $/; <$source> };
$text =~ s/Mojo::Reactor::EV/Mojo::Reactor::Tambour/g;
$text =~ s/\Qeval { require EV; EV->VERSION('4.32'); 1 }\E/1/;
my $program = File::Temp->new (SUFFIX => ".t");
print $program $text;
close $program;
@ENV{qw(TEST_EV MOJO_REACTOR)} = (1, "Mojo::Reactor::Tambour");
exec $^X, (map { "-I$_" } @INC), $program->filename;
