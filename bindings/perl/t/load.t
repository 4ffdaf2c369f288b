# The module loads, and AnyEvent finds it by itself.
use strict;
use warnings;

use Test::More;

use_ok "Tambour";
cmp_ok $Tambour::VERSION, ">", 0, "a version, by which AnyEvent knows that it is there";
like Tambour::backend(), qr/^(epoll|io_uring|poll|select)$/, "a backend";
ok !exists $INC{"AnyEvent.pm"}, "AnyEvent is not loaded for those who do without";
SKIP: {
    skip "AnyEvent is not installed", 1 if !eval { require AnyEvent };
    delete local $ENV{PERL_ANYEVENT_MODEL};
    is AnyEvent::detect(), "AnyEvent::Impl::Tambour", "it is used where it was loaded first";
}
done_testing;
