# Tests the behaviour that AnyEvent documents, on Tambour.
use strict;
use warnings;

use Test::More;
use lib "t";
use Walk;

plan skip_all => "AnyEvent is not installed" if !Walk::has("AnyEvent");
my @expected = Walk::expected();
my @got = Walk::walk("Tambour");
is shift @got, "model AnyEvent::Impl::Tambour", "AnyEvent uses Tambour";
Walk::compare(\@got, \@expected);
done_testing;
