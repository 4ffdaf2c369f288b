# The same walk on EV: what Tambour does is what EV's users know.
use strict;
use warnings;

use Test::More;
use lib "t";
use Walk;

plan skip_all => "AnyEvent or EV is not installed" if !Walk::has("AnyEvent") || !Walk::has("EV");
my @ev = Walk::walk("EV");
my @tambour = Walk::walk("Tambour");
is shift @ev, "model AnyEvent::Impl::EV", "EV's model";
is shift @tambour, "model AnyEvent::Impl::Tambour", "our model";
Walk::compare(\@tambour, \@ev);
done_testing;
