/* libevent-2.1.so.7 has no symbols: they are in the libraries that it needs. */
typedef int tambour_libevent_all;
