// The WebSocket servers of the subjects gws and coder: server gws|coder PORT echo|broadcast
// plain|deflate.
package main

import (
	"context"
	"log"
	"net"
	"net/http"
	"os"
	"sync"

	"github.com/coder/websocket"
	"github.com/lxzan/gws"
)

const messageBytesMax = 16 << 20

// With gws: an event handler, as in its README.
type handler struct {
	gws.BuiltinEventHandler
	broadcast bool
	mutex     sync.Mutex
	sockets   map[*gws.Conn]struct{}
}

func (h *handler) OnOpen(socket *gws.Conn) {
	h.mutex.Lock()
	h.sockets[socket] = struct{}{}
	h.mutex.Unlock()
}

func (h *handler) OnClose(socket *gws.Conn, err error) {
	h.mutex.Lock()
	delete(h.sockets, socket)
	h.mutex.Unlock()
}

func (h *handler) OnMessage(socket *gws.Conn, message *gws.Message) {
	defer message.Close()
	if !h.broadcast {
		socket.WriteMessage(message.Opcode, message.Bytes())
		return
	}
	broadcaster := gws.NewBroadcaster(message.Opcode, message.Bytes())
	defer broadcaster.Close()
	h.mutex.Lock()
	for other := range h.sockets {
		broadcaster.Broadcast(other)
	}
	h.mutex.Unlock()
}

func serveGws(broadcast, deflate bool) http.HandlerFunc {
	upgrader := gws.NewUpgrader(&handler{broadcast: broadcast, sockets: map[*gws.Conn]struct{}{}},
		&gws.ServerOption{
			ReadMaxPayloadSize: messageBytesMax,
			PermessageDeflate:  gws.PermessageDeflate{Enabled: deflate, Threshold: 64},
		})
	return func(w http.ResponseWriter, r *http.Request) {
		if socket, err := upgrader.Upgrade(w, r); err == nil {
			go socket.ReadLoop()
		}
	}
}

// With coder/websocket: a goroutine for each connection; for broadcasts, a channel for each, as in
// its chat example.
func serveCoder(broadcast, deflate bool) http.HandlerFunc {
	type message struct {
		kind websocket.MessageType
		data []byte
	}
	var mutex sync.Mutex
	subscribers := map[chan message]struct{}{}
	options := &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled}
	if deflate {
		options.CompressionMode = websocket.CompressionNoContextTakeover
		options.CompressionThreshold = 64
	}
	return func(w http.ResponseWriter, r *http.Request) {
		socket, err := websocket.Accept(w, r, options)
		if err != nil {
			return
		}
		defer socket.CloseNow()
		socket.SetReadLimit(messageBytesMax)
		ctx := context.Background()
		if broadcast {
			queue := make(chan message, 16)
			mutex.Lock()
			subscribers[queue] = struct{}{}
			mutex.Unlock()
			defer func() {
				mutex.Lock()
				delete(subscribers, queue)
				close(queue)
				mutex.Unlock()
			}()
			go func() {
				for next := range queue {
					socket.Write(ctx, next.kind, next.data)
				}
			}()
		}
		for {
			kind, data, err := socket.Read(ctx)
			if err != nil {
				return
			}
			if !broadcast {
				socket.Write(ctx, kind, data)
				continue
			}
			mutex.Lock()
			for queue := range subscribers {
				queue <- message{kind, data}
			}
			mutex.Unlock()
		}
	}
}

func main() {
	broadcast := os.Args[3] == "broadcast"
	deflate := os.Args[4] == "deflate"
	serve := serveGws
	if os.Args[1] == "coder" {
		serve = serveCoder
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(listener, serve(broadcast, deflate)))
}
