# Compares the behaviour of Tambour and EV: walk.pl must print the same trace on both.
use strict;
use warnings;

use Test::More;
use lib "t";
use Walk;

plan skip_all => "AnyEvent or EV is not installed" if !Walk::has("AnyEvent") || !Walk::has("EV");
my @ev = Walk::walk("EV");
my @tambour = Walk::walk("Tambour");
is shift @ev, "model AnyEvent::Impl::EV", "EV's model";
is shift @tambour, "model AnyEvent::Impl::Tambour", "Tambour's model";
Walk::compare(\@tambour, \@ev);
done_testing;
