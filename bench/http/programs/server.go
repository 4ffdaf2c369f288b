// The HTTP server of the subject go: server PORT BYTES FOLDER plain|h2c|tls.
package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
)

type item struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
	Done bool   `json:"done"`
}

func main() {
	bytes, _ := strconv.Atoi(os.Args[2])
	folder := os.Args[3]
	text := strings.Repeat("b", bytes)
	http.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		io.WriteString(w, text)
	})
	http.HandleFunc("/json", func(w http.ResponseWriter, r *http.Request) {
		items := make([]item, 0, bytes/44)
		for id := 1000; len(items) < cap(items); id++ {
			items = append(items, item{id, "item " + strconv.Itoa(id), false})
		}
		body, _ := json.Marshal(items)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body)
	})
	http.HandleFunc("/upload", func(w http.ResponseWriter, r *http.Request) {
		size, _ := io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, strconv.FormatInt(size, 10))
	})
	http.HandleFunc("/baseline2", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, strconv.Itoa(sumOfQuery(r)))
	})
	http.HandleFunc("/small", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, strings.Repeat("s", 64))
	})
	http.Handle("/static/", http.FileServer(http.Dir(folder+"/files")))
	handleArena()
	address := "127.0.0.1:" + os.Args[1]
	if os.Args[4] == "tls" {
		log.Fatal(http.ListenAndServeTLS(address, folder+"/server.pem", folder+"/server.pem", nil))
	}
	server := &http.Server{Addr: address}
	if os.Args[4] == "h2c" {
		useUnencryptedHTTP2(server)
	}
	log.Fatal(server.ListenAndServe())
}
