# Tests that the module loads and that AnyEvent finds it.
use strict;
use warnings;

use Test::More;

use_ok "Tambour";
cmp_ok $Tambour::VERSION, ">", 0, "has a version, which AnyEvent requires";
like Tambour::backend(), qr/^(epoll|io_uring|poll|select)$/, "a backend";
ok !exists $INC{"AnyEvent.pm"}, "does not load AnyEvent";
SKIP: {
    skip "AnyEvent is not installed", 1 if !eval { require AnyEvent };
    delete local $ENV{PERL_ANYEVENT_MODEL};
    is AnyEvent::detect(), "AnyEvent::Impl::Tambour", "AnyEvent uses Tambour if it was loaded first";
}
done_testing;
