// Names that docs/adapters.md does not declare.
// include: <tambour/adapters/cares.h>
// include: <tambour/adapters/curl.h>
// include: <tambour/adapters/glib.h>
// include: <tambour/adapters/hiredis.h>
// include: <tambour/adapters/libevent.h>
// include: <tambour/adapters/libpq.h>
// include: <libssh2_sftp.h>
// include: <tambour/adapters/libssh2.h>
// include: <tambour/adapters/mariadb.h>
// include: <tambour/adapters/mosquitto.h>
// include: <tambour/adapters/nats.h>
// include: <tambour/adapters/rdkafka_consumer.h>
// include: <tambour/adapters/rdkafka_producer.h>
// include: <tambour/adapters/sd_bus.h>
// include: <tambour/adapters/sd_event.h>
extern EventLoop& loop;
extern GMainLoop* main_loop;
extern sd_event* event;
int callback(sd_event_source* source, void* data);
extern redisAsyncContext* context;
Task<> serve();
int redisLibeventAttach(redisAsyncContext* context, event_base* base);
